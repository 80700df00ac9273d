"""The forms of reviewers and managers: an authoritative rating, a verdict, and a decision on a task set aside."""

from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from annotator.infrastructure.limits import LONGEST_NOTE
from annotator.models import NEITHER_VALID, PREFERENCES, TIE, Adjudication, Label, Project, Task, Verdict
from annotator.models.public_ids import response_number
from annotator.pages.rating.ranking_form import filled_ranks, ranking, refuse_unranked
from annotator.pages.rating.rating_form import ScoresForm, likert
from annotator.pages.rating.segments_form import SegmentTable, filled_segments
from annotator.stages.consensus import half_up
from annotator.stages.review.rating_sheets import AttributeRow, Reviewed, Said, Sheet, said_by
from annotator.stages.segmenting import ranges


class QuarantineForm(forms.Form):
    """A manager's decision on a task that was set aside. It has no default, because retiring a task is for good."""

    decision = forms.ChoiceField(
        choices=[
            ("release", gettext_lazy("False alarm: back to the queue")),
            ("retire", gettext_lazy("Justified: retire it")),
        ]
    )

    def is_safe_to_use(self) -> bool:
        """Returns whether a valid form says that the task goes back to the queue."""
        return bool(self.cleaned_data["decision"] == "release")


class AdjudicationForm(ScoresForm):
    """Asks for a level for each response and attribute, and for a reason; of a task that waits for raters, nothing.

    Nothing is chosen beforehand unless the reviewer asks for it. Each question comes with what the raters answered.
    """

    reason = forms.ChoiceField(
        choices=Adjudication.Reason.choices,
        widget=forms.RadioSelect,
        label=gettext_lazy("Why did the ratings differ?"),
        error_messages={"required": gettext_lazy("Say why the ratings differ.")},
    )
    comment = forms.CharField(
        required=False,
        max_length=LONGEST_NOTE,
        widget=forms.Textarea(attrs={"rows": 3}),
        label=gettext_lazy("Comment (optional)"),
    )
    example = forms.BooleanField(
        required=False, label=gettext_lazy("Show it to raters as an example of its levels, with the comment")
    )

    def __init__(
        self,
        project: Project,
        ratings: Reviewed,
        *args: Any,
        tables: Sequence[SegmentTable] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.ratings, self.may_be_settled = ratings, ratings.task.state == Task.State.COMPLETE
        self.responses, self.attributes = [sheet.response for sheet in ratings.sheets], project.attributes_for()
        values = self.data if self.is_bound else self.initial
        self.tables = [table.with_answers(values) for table in tables]
        for letter, response in self.lettered():
            for attribute in self.attributes:
                self.fields[f"{attribute.key}-{response.public_id}"] = likert(attribute, letter)
        if self.may_be_settled:
            self.ask_comparison(project)

    def clean(self) -> dict[str, Any]:
        refuse_unranked(self, self.responses, ascii_uppercase)
        for table in self.tables:
            # An empty table leaves the segments as the annotators agree on them.
            if table.answered and (fault := table.fault()):
                self.add_error(None, forms.ValidationError(fault, code=table.id))
        return self.cleaned_data

    def sheets(self) -> list[dict[str, Any]]:
        """Returns what the template shows of each response: its letter, itself, its bound fields, and its ratings."""
        return [
            {
                "letter": sheet.letter,
                "response": sheet.response,
                "attributes": [self._row(row, sheet) for row in sheet.rows] if self.may_be_settled else [],
                "table": self.tables[place] if self.tables else None,
                "ratings": sheet,
            }
            for place, sheet in enumerate(self.ratings.sheets)
        ]

    def _row(self, row: AttributeRow, sheet: Sheet) -> dict[str, Any]:
        levels = {score: str(score + 1) for score in range(len(row.attribute.levels))}
        return {
            "attribute": row.attribute,
            "field": self[f"{row.attribute.key}-{sheet.response.public_id}"],
            "checks": None,
            "said": said_by([(rater, score) for rater, score, _text in row.cells], levels, differ=row.wide),
        }

    def said_of_preference(self) -> Said:
        """Returns the raters' preferences; they differ where one rater prefers A and another one B."""
        given = [(rater, rater.annotation.preference) for rater in self.ratings.raters]
        sides = {value > TIE for rater, value in given if rater.counts and value not in {None, TIE, NEITHER_VALID}}
        texts = {value: f"{'B' if value > TIE else 'A'}{abs(value)}" for value in PREFERENCES}
        return said_by(given, texts | {TIE: "=", NEITHER_VALID: "×"}, differ=len(sides) > 1)

    def decision(self) -> dict[str, Any]:
        """Returns a valid form's answers as the keyword arguments of `adjudicate`."""
        data = self.cleaned_data
        return {
            "scores": {response.pk: self.scores_of(response) for response in self.responses},
            "segments": {table.response.pk: table.scores() for table in self.tables if table.answered},
            "preference": data.get("preference"),
            "ranking": ranking(data, self.responses),
            "reason": data["reason"],
            "comment": data["comment"],
            "is_example": data["example"],
        }


def started_from(scores: Mapping[int, Mapping[str, int]]) -> dict[str, int]:
    """Returns initial values of the form from scores by response id and attribute key."""
    return {
        f"{key}-{response_number(response)}": score
        for response, levels in scores.items()
        for key, score in levels.items()
    }


def as_it_stands(adjudication: Adjudication) -> dict[str, Any]:
    """Returns initial values of the form from the authoritative rating in force."""
    scores = {int(response): score for response, score in adjudication.scores.items()}
    compared = {"preference": adjudication.preference} | filled_ranks(adjudication.ranking)
    said = {"reason": adjudication.reason, "comment": adjudication.comment, "example": adjudication.is_example}
    values: dict[str, Any] = started_from(scores) | compared | said
    for response, rows in adjudication.segments.items():
        values |= filled_segments(response_number(int(response)), adjudication.aspects, rows)
    return values


def agreed_segments(label: Label) -> dict[str, str]:
    """Returns initial values of the form from the annotators' agreed scores of a response's segments.

    Where they have cut it in other ways, a segment gets the rounded mean of the finer ones that it consists of.
    """
    rows = label.segment_scores or ()
    if label.cut:
        finer = ranges(label.cut)
        means = label.segment_means or ()
        rows = []
        for whole in ranges(label.response.segments):
            pairs = zip(finer, means, strict=True)
            within = [row for one, row in pairs if whole.start <= one.start and one.end <= whole.end]
            known = [[value for value in column if value is not None] for column in zip(*within, strict=True)]
            rows.append([half_up(sum(values) / len(values)) if values else None for values in known])
    return filled_segments(response_number(label.response_id), label.aspects, rows)


class VerdictForm(forms.Form):
    """Accepts or rejects one annotation, with a comment."""

    decision = forms.ChoiceField(choices=Verdict.Decision.choices)
    comment = forms.CharField(required=False, max_length=LONGEST_NOTE)
