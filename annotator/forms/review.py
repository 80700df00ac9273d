"""A reviewer's forms: the authoritative rating of a task, and the word on one annotation."""

from collections.abc import Mapping
from string import ascii_uppercase
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotator.annotation import asks_for_ranking
from annotator.db.storable_text import LONGEST_NOTE
from annotator.forms.ranking import Place, filled_ranks, places, rank_field, rank_name, ranking, refuse_unranked
from annotator.forms.rating import PREFERENCE_TEXTS, choice, likert
from annotator.models import Adjudication, Project, Response, Verdict
from annotator.models.public_ids import response_number


class QuarantineForm(forms.Form):
    """A manager's word on a task that was set aside. Retiring it is for good, so that nothing stands for it."""

    decision = forms.ChoiceField(
        choices=[
            ("release", gettext_lazy("False alarm: back to the queue")),
            ("retire", gettext_lazy("Justified: retire it")),
        ]
    )

    def is_safe_to_use(self) -> bool:
        """What a valid form says."""
        return bool(self.cleaned_data["decision"] == "release")


class AdjudicationForm(forms.Form):
    """A level per response and attribute, and why. Nothing is chosen beforehand unless the reviewer asks for it."""

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
            self.fields["preference"] = choice(PREFERENCE_TEXTS, _("Which response is better?"))
        if asks_for_ranking(project, len(responses)):
            for letter, response in zip(ascii_uppercase, responses, strict=False):
                self.fields[rank_name(response.public_id)] = rank_field(letter, len(responses))

    def clean(self) -> dict[str, Any]:
        refuse_unranked(self, self.responses, ascii_uppercase)
        return self.cleaned_data

    def ranking(self) -> list[Place]:
        """What the template shows of the responses to be ranked; empty where none are."""
        return places(self, self.responses, ascii_uppercase)

    def scales(self, response: Response) -> list[dict[str, Any]]:
        """The bound fields of one response."""
        keys = [(item, f"{item.key}-{response.public_id}") for item in self.attributes]
        return [{"attribute": attribute, "field": self[name]} for attribute, name in keys]

    def decision(self) -> dict[str, Any]:
        """What a valid form says, as `adjudicate` takes it."""
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
    """Initial values of the form from scores by response."""
    return {
        f"{key}-{response_number(response)}": score
        for response, levels in scores.items()
        for key, score in levels.items()
    }


def as_it_stands(made: Adjudication) -> dict[str, Any]:
    """Initial values of the form from the authoritative rating in force."""
    scores = {int(response): score for response, score in made.scores.items()}
    compared = {"preference": made.preference} | filled_ranks(made.ranking)
    return started_from(scores) | compared | {"reason": made.reason, "comment": made.comment}


class VerdictForm(forms.Form):
    """Accepted or rejected, and why."""

    decision = forms.ChoiceField(choices=Verdict.Decision.choices)
    comment = forms.CharField(required=False, max_length=LONGEST_NOTE)
