"""The forms of reviewers and managers: an authoritative rating, a verdict, and a decision on a task set aside."""

from collections.abc import Mapping
from string import ascii_uppercase
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from annotator.annotation import asks_for_ranking
from annotator.db.storable_text import LONGEST_NOTE
from annotator.forms.ranking import Place, filled_ranks, places, rank_field, rank_name, ranking, refuse_unranked
from annotator.forms.rating import likert, preference_field
from annotator.models import Adjudication, Project, Response, Verdict
from annotator.models.public_ids import response_number


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


class AdjudicationForm(forms.Form):
    """Asks for a level for each response and attribute, and for a reason.

    Nothing is chosen beforehand unless the reviewer asks for it.
    """

    reason = forms.ChoiceField(
        choices=Adjudication.Reason.choices,
        widget=forms.RadioSelect,
        label=gettext_lazy("Why did the ratings differ?"),
        error_messages={"required": gettext_lazy("Say why the ratings differ.")},
    )
    comment = forms.CharField(required=False, max_length=LONGEST_NOTE, widget=forms.Textarea(attrs={"rows": 3}))

    def __init__(self, project: Project, responses: list[Response], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.responses, self.attributes = responses, project.attributes_for()
        for letter, response in zip(ascii_uppercase, responses, strict=False):
            for attribute in self.attributes:
                self.fields[f"{attribute.key}-{response.public_id}"] = likert(attribute, letter)
        if project.ask_preference and len(responses) == 2:
            self.fields["preference"] = preference_field(project)
        if asks_for_ranking(project, len(responses)):
            for letter, response in zip(ascii_uppercase, responses, strict=False):
                self.fields[rank_name(response.public_id)] = rank_field(letter, len(responses))

    def clean(self) -> dict[str, Any]:
        refuse_unranked(self, self.responses, ascii_uppercase)
        return self.cleaned_data

    def ranking(self) -> list[Place]:
        """Returns the responses to be ranked with their bound fields; none where nothing is ranked."""
        return places(self, self.responses, ascii_uppercase)

    def scales(self, response: Response) -> list[dict[str, Any]]:
        """Returns the bound fields of one response."""
        return [
            {"attribute": attribute, "field": self[f"{attribute.key}-{response.public_id}"]}
            for attribute in self.attributes
        ]

    def decision(self) -> dict[str, Any]:
        """Returns a valid form's answers as the keyword arguments of `adjudicate`."""
        data = self.cleaned_data
        return {
            "scores": {
                response.pk: {
                    attribute.key: data[f"{attribute.key}-{response.public_id}"] for attribute in self.attributes
                }
                for response in self.responses
            },
            "preference": data.get("preference"),
            "ranking": ranking(data, self.responses),
            "reason": data["reason"],
            "comment": data["comment"],
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
    return started_from(scores) | compared | {"reason": adjudication.reason, "comment": adjudication.comment}


class VerdictForm(forms.Form):
    """Accepts or rejects one annotation, with a comment."""

    decision = forms.ChoiceField(choices=Verdict.Decision.choices)
    comment = forms.CharField(required=False, max_length=LONGEST_NOTE)
