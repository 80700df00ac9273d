"""The rating form: radio buttons for each response and attribute, and whatever else the project asks."""

from collections.abc import Iterator, Mapping, Sequence
from string import ascii_uppercase
from typing import Any

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotator.infrastructure.limits import LONGEST_EDIT, LONGEST_JUSTIFICATION
from annotator.models import (
    LONGEST_ACTIVE_SECONDS,
    NEITHER_VALID,
    TIE,
    Annotation,
    Attribute,
    Project,
    Rating,
    Response,
    UnsafeCategory,
)
from annotator.models.public_ids import response_number
from annotator.pages.account.language_field import LanguageField
from annotator.pages.rating.evidence_form import (
    Evidence,
    evidence_field,
    evidence_name,
    filled_evidence,
    located_evidence,
)
from annotator.pages.rating.ranking_form import (
    RankedResponse,
    filled_ranks,
    places,
    rank_field,
    rank_name,
    ranking,
    refuse_unranked,
)
from annotator.pages.rating.segments_form import SegmentTable, filled_segments, rating_table
from annotator.stages.annotation import (
    ResponseRating,
    Submission,
    by_position,
    safety_errors,
    written_fault,
)
from annotator.stages.segmenting import ranges

Texts = dict[int, str | Promise]

PREFERENCE_TEXTS: Texts = {
    -3: gettext_lazy("A is much better"),
    -2: gettext_lazy("A is better"),
    -1: gettext_lazy("A is slightly better"),
    TIE: gettext_lazy("Both are equally good"),
    1: gettext_lazy("B is slightly better"),
    2: gettext_lazy("B is better"),
    3: gettext_lazy("B is much better"),
    NEITHER_VALID: gettext_lazy("Neither is valid"),
}
CONFIDENCE_TEXTS: Texts = {2: gettext_lazy("Very sure"), 1: gettext_lazy("Somewhat sure"), 0: gettext_lazy("Not sure")}
SAFETY_TEXTS: Texts = {1: gettext_lazy("Safe"), 0: gettext_lazy("Unsafe")}


class ScoresForm(forms.Form):
    """What raters and reviewers are asked alike of a task's responses."""

    attributes: Sequence[Attribute]
    responses: Sequence[Response]
    tables: Sequence[SegmentTable]
    said_of_preference: Any = None
    """What raters have said of it, for a reviewer."""

    def lettered(self) -> Iterator[tuple[str, Response]]:
        return zip(ascii_uppercase, self.responses, strict=False)

    def ask_comparison(self, project: Project) -> None:
        """Adds the fields of a preference between two responses, or of the ranks of more."""
        if project.ask_preference and len(self.responses) == 2:
            texts = {
                strength: text for strength, text in PREFERENCE_TEXTS.items() if strength != TIE or project.allow_ties
            }
            self.fields["preference"] = choice(texts, _("Which response is better?"))
        if project.asks_for_ranking(len(self.responses)):
            for letter, response in self.lettered():
                self.fields[rank_name(response.public_id)] = rank_field(letter, len(self.responses))

    def scores_of(self, response: Response) -> dict[str, int]:
        """Returns a valid form's scores of a response by attribute key."""
        return {one.key: self.cleaned_data[f"{one.key}-{response.public_id}"] for one in self.attributes}

    def ranking(self) -> list[RankedResponse]:
        """Returns the responses to be ranked with their bound fields; none where nothing is ranked."""
        return places(self, self.responses, ascii_uppercase)

    def faults_of_segments(self) -> list[tuple[str, str]]:
        """Returns the place on the page and the text of each fault about segments."""
        return [(error.code or "", str(error.message)) for error in self.non_field_errors().as_data()]


class RatingForm(ScoresForm):
    """Asks everything that the project wants to know about one leased task. Nothing is chosen beforehand."""

    justification = forms.CharField(
        required=False, max_length=LONGEST_JUSTIFICATION, widget=forms.Textarea(attrs={"rows": 3})
    )
    active_seconds = forms.FloatField(
        required=False, min_value=0, max_value=LONGEST_ACTIVE_SECONDS, widget=forms.HiddenInput
    )

    def __init__(self, project: Project, responses: list[Response], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.project, self.responses = project, responses
        self.attributes = project.attributes_for()
        self.evidence: dict[int, Evidence] = {}
        self.tables = self._tables()
        for letter, response in self.lettered():
            for attribute in self.attributes:
                self.fields[f"{attribute.key}-{response.public_id}"] = likert(attribute, letter)
                if attribute.checks:
                    self.fields[f"checks-{attribute.key}-{response.public_id}"] = forms.MultipleChoiceField(
                        choices=attribute.shown_checks, required=False, widget=forms.CheckboxSelectMultiple
                    )
            if self.attributes:
                self.fields[evidence_name(response.public_id)] = evidence_field()
            if project.ask_confidence:
                confidence = choice(CONFIDENCE_TEXTS, _("Confidence in correctness"), letter)
                self.fields[f"confidence-{response.public_id}"] = confidence
            if project.ask_safety:
                self.fields[f"safe-{response.public_id}"] = choice(SAFETY_TEXTS, _("Safety"), letter)
                self.fields[f"unsafe-{response.public_id}"] = forms.ChoiceField(
                    choices=UnsafeCategory.choices,
                    label=_("What is unsafe about it?"),
                    widget=forms.RadioSelect,
                    required=False,
                )
            if project.ask_feedback:
                label = _("What is good and bad about it?")
                self.fields[f"written-feedback-{response.public_id}"] = _written(
                    label, LONGEST_JUSTIFICATION, rows=4, required=True, error_messages=_required(label, letter)
                )
            if project.ask_edit:
                self.fields[f"written-edit-{response.public_id}"] = _written(_("Better version"), LONGEST_EDIT, rows=8)
                summary = _written(_("What have you changed?"), LONGEST_JUSTIFICATION, rows=2)
                self.fields[f"written-summary-{response.public_id}"] = summary
        self.ask_comparison(project)
        if project.domains:
            label = _("Domain")
            self.fields["domain"] = forms.ChoiceField(
                choices=[(domain, domain) for domain in project.domains],
                label=label,
                widget=forms.RadioSelect,
                error_messages=_required(label),
            )
        if project.ask_language:
            label = _("Language")
            self.fields["language"] = LanguageField(label=label, error_messages=_required(label))

    def _tables(self) -> list[SegmentTable]:
        """Returns a table of segments for each response; none where whole responses alone are rated."""
        aspects = self.project.aspects()
        if not aspects:
            return []
        values = self.data if self.is_bound else self.initial
        return [
            rating_table(letter, response, aspects, values, refuses=self.is_bound)
            for letter, response in self.lettered()
        ]

    def clean(self) -> dict[str, Any]:
        """Requires a category for each response that is called unsafe, and a rank for each that is to be ranked."""
        for letter, response in self.lettered():
            unsafe = self.cleaned_data.get(f"safe-{response.public_id}") == 0
            # A category may be left from before the response was called safe after all; it is ignored.
            if unsafe and safety_errors(False, self.cleaned_data.get(f"unsafe-{response.public_id}", "")):
                text = _("Response %(letter)s: say what is unsafe about it.") % {"letter": letter}
                self.add_error(f"unsafe-{response.public_id}", text)
            self._check_edit(letter, response)
        self.evidence = located_evidence(self, self.responses, [attribute.key for attribute in self.attributes])
        refuse_unranked(self, self.responses, ascii_uppercase)
        texts = [name for name in self.fields if name == "justification" or name.startswith("written-")]
        written = [str(self.cleaned_data.get(name, "")) for name in texts]
        comments = [row.comment for table in self.tables for row in table.rows]
        notes = [note for places in self.evidence.values() for *_place, note in places]
        if fault := written_fault([*written, *comments, *notes]):
            self.add_error("justification", fault)
        for table in self.tables:
            if fault := table.fault():
                self.add_error(None, forms.ValidationError(fault, code=table.id))
        return self.cleaned_data

    def _check_edit(self, letter: str, response: Response) -> None:
        """Drops an edit that is the response as it was, and requires the edit that a summary is of."""
        name = f"written-edit-{response.public_id}"
        if self.cleaned_data.get(name, "").split() == response.text.split():
            self.cleaned_data[name] = ""
        summary = self.cleaned_data.get(f"written-summary-{response.public_id}")
        if summary and name not in self.errors and not self.cleaned_data[name]:
            text = _("Response %(letter)s: you describe a change, but the better version is missing or unchanged.")
            self.add_error(name, text % {"letter": letter})

    @property
    def first_box_digit(self) -> int:
        """The key of an attribute's first box: the keys before it are those of the levels of the longest scale."""
        return 1 + max((len(attribute.levels) for attribute in self.attributes), default=0)

    def questions(self) -> list[str]:
        """Returns the names of the fields that have to be answered as the form stands now."""
        asked = [
            name
            for name, field in self.fields.items()
            if isinstance(field.widget, forms.RadioSelect) or name.startswith("written-feedback-") or name == "language"
        ]
        # The category is a question only while its response is called unsafe.
        return [
            name
            for name in asked
            if not name.startswith("unsafe-") or str(self[name.replace("unsafe-", "safe-", 1)].value()) == "0"
        ]

    @property
    def asked(self) -> int:
        """The number of questions that the task has; a ranking of all responses is one."""
        return len(self.questions()) + bool(self._ranks()) + sum(table.asked for table in self.tables)

    @property
    def answered(self) -> int:
        """The number of questions that have an answer as the form stands now."""
        ranked = bool(self._ranks()) and all(map(self._has_answer, self._ranks()))
        of_segments = sum(table.answered for table in self.tables)
        return sum(map(self._has_answer, self.questions())) + ranked + of_segments

    def _ranks(self) -> list[str]:
        return [name for name in self.fields if name.startswith("rank-")]

    def _has_answer(self, name: str) -> bool:
        return self[name].value() not in (None, "")

    def sheets(self) -> list[dict[str, Any]]:
        """Returns what the template shows of each response: its letter, the response itself, and its bound fields."""
        return [
            {
                "letter": letter,
                "response": response,
                "attributes": [self._row(attribute, response) for attribute in self.attributes],
                "extra": self._fields_of(response, ("confidence", "safe", "unsafe")),
                "feedback": self._fields_of(response, ("written-feedback",)),
                "edit": self._fields_of(response, ("written-edit", "written-summary")),
                "table": self.tables[place] if self.tables else None,
                "evidence": next(iter(self._fields_of(response, ("evidence",))), None),
            }
            for place, (letter, response) in enumerate(self.lettered())
        ]

    def _fields_of(self, response: Response, names: Sequence[str]) -> list[forms.BoundField]:
        asked = (f"{name}-{response.public_id}" for name in names)
        return [self[name] for name in asked if name in self.fields]

    def _row(self, attribute: Attribute, response: Response) -> dict[str, Any]:
        checks = f"checks-{attribute.key}-{response.public_id}"
        return {
            "attribute": attribute,
            "field": self[f"{attribute.key}-{response.public_id}"],
            "checks": self[checks] if checks in self.fields else None,
            "said": None,
        }

    def submission(self) -> Submission:
        """Returns a valid form's answers. The preference is relative to the order in which responses are shown."""
        return Submission(
            ratings={response.pk: self._rating(place, response) for place, response in enumerate(self.responses)},
            preference=self.cleaned_data.get("preference"),
            ranking=ranking(self.cleaned_data, self.responses),
            justification=self.cleaned_data["justification"],
            domain=self.cleaned_data.get("domain", ""),
            language=self.cleaned_data.get("language", ""),
            active_seconds=self.cleaned_data["active_seconds"],
        )

    def _rating(self, place: int, response: Response) -> ResponseRating:
        data, table = self.cleaned_data, self.tables[place] if self.tables else None
        safe = data.get(f"safe-{response.public_id}")
        checks = [f"checks-{attribute.key}-{response.public_id}" for attribute in self.attributes]
        return ResponseRating(
            scores=self.scores_of(response),
            # Two attributes may have a check in common, which is stored once.
            checks=tuple(dict.fromkeys(check for name in checks for check in data.get(name, []))),
            confidence=data.get(f"confidence-{response.public_id}"),
            safe=None if safe is None else bool(safe),
            unsafe_category=data[f"unsafe-{response.public_id}"] if safe == 0 else "",
            feedback=data.get(f"written-feedback-{response.public_id}", ""),
            edit=data.get(f"written-edit-{response.public_id}", ""),
            edit_summary=data.get(f"written-summary-{response.public_id}", ""),
            segments=table.scores() if table else (),
            cut=table.changed_cut() if table else (),
            comments=table.comments() if table else (),
            evidence=self.evidence.get(response.pk, ()),
        )


def likert(attribute: Attribute, letter: str) -> forms.TypedChoiceField:
    """Returns the scale of an attribute: levels count from 1 on the page, and from 0 in the data."""
    choices = [(score, text) for score, text in enumerate(attribute.shown_levels)]
    name = attribute.shown_name
    return forms.TypedChoiceField(
        choices=choices,
        coerce=int,
        label=name,
        widget=forms.RadioSelect,
        error_messages=_required(name, letter),
    )


def choice(texts: Texts, label: str, letter: str = "") -> forms.TypedChoiceField:
    return forms.TypedChoiceField(
        choices=list(texts.items()),
        coerce=int,
        label=label,
        widget=forms.RadioSelect,
        error_messages=_required(label, letter),
    )


def _written(label: str, longest: int, *, rows: int, required: bool = False, **options: Any) -> forms.CharField:
    return forms.CharField(
        label=label, required=required, max_length=longest, widget=forms.Textarea(attrs={"rows": rows}), **options
    )


def _required(label: str, letter: str = "") -> dict[str, str]:
    """Returns what is said where the question has no answer."""
    if not letter:
        return {"required": _("Please answer “%(question)s”.") % {"question": label}}
    text = _("Response %(letter)s: please answer “%(question)s”.")
    return {"required": text % {"letter": letter, "question": label}}


class GoldForm(RatingForm):
    """The rating form with nothing but its scales: experts give no confidence, safety or preference."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        scales = {f"{one.key}-{response.public_id}" for one in self.attributes for response in self.responses}
        for name in set(self.fields) - scales - {"active_seconds"}:
            del self.fields[name]

    def segments(self) -> dict[int, Sequence[Mapping[str, int | None]]]:
        """Returns a valid form's scores of segments by response id; nothing where whole responses alone are rated."""
        return {table.response.pk: table.scores() for table in self.tables}

    def scores(self) -> dict[int, dict[str, int]]:
        """Returns a valid form's scores, keyed by response id and attribute key."""
        return {response.pk: self.scores_of(response) for response in self.responses}


def filled(annotation: Annotation) -> dict[str, object]:
    """Returns initial values of the rating form. The preference is relative to the order that its annotator saw."""
    values: dict[str, object] = {
        "justification": annotation.justification,
        "domain": annotation.domain,
        "language": annotation.language,
        "active_seconds": annotation.active_seconds,
        "preference": by_position(annotation.preference, annotation.assignment.response_order),
    }
    values |= filled_ranks(annotation.ranking)
    for rating in annotation.ratings.all():
        response = response_number(rating.response_id)
        values |= {f"{key}-{response}": score for key, score in rating.scores.items()}
        values |= {f"checks-{key}-{response}": rating.checks for key in rating.scores}
        values[f"confidence-{response}"] = rating.confidence
        values[f"safe-{response}"] = None if rating.safe is None else int(rating.safe)
        values[f"unsafe-{response}"] = rating.unsafe_category
        values[f"written-feedback-{response}"] = rating.feedback
        values[f"written-edit-{response}"] = rating.edit
        values[f"written-summary-{response}"] = rating.edit_summary
        values[evidence_name(response)] = filled_evidence(rating)
        if rating.segment_scores is not None:
            values |= _segments(rating, annotation.aspects)
    return values


def _segments(rating: Rating, aspects: Sequence[str]) -> dict[str, str]:
    response = rating.response
    return filled_segments(
        response.public_id,
        aspects,
        rating.segment_scores or (),
        cut=ranges(rating.cut or response.segments),
        own=bool(rating.cut),
        comments=rating.comments,
        text=response.text,
    )
