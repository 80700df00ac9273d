"""The rating: one group of radios per response and attribute, and what else the project asks."""

from string import ascii_uppercase
from typing import Any

from django import forms

from annotator.annotation import ResponseRating, Submission
from annotator.models import NEITHER_VALID, Attribute, Project, Response
from annotator.rubrics import LEVELS

PREFERENCE_TEXTS = {
    -3: "A is much better",
    -2: "A is better",
    -1: "A is slightly better",
    1: "B is slightly better",
    2: "B is better",
    3: "B is much better",
    NEITHER_VALID: "Neither is valid",
}
CONFIDENCE_TEXTS = {2: "Very sure", 1: "Somewhat sure", 0: "Not sure"}


class RatingForm(forms.Form):
    """Everything the project asks about one leased task. Nothing is chosen beforehand."""

    justification = forms.CharField(required=False, max_length=20_000, widget=forms.Textarea(attrs={"rows": 3}))
    active_seconds = forms.FloatField(required=False, min_value=0, widget=forms.HiddenInput)

    def __init__(self, project: Project, responses: list[Response], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.project, self.responses = project, responses
        self.attributes = project.attributes_for()
        for letter, response in zip(ascii_uppercase, responses, strict=False):
            for attribute in self.attributes:
                self.fields[f"{attribute.key}-{response.pk}"] = _likert(attribute, letter)
                if attribute.checks:
                    self.fields[f"checks-{attribute.key}-{response.pk}"] = _checks(attribute)
            if project.ask_confidence:
                self.fields[f"confidence-{response.pk}"] = _choice(
                    CONFIDENCE_TEXTS, "Confidence in correctness", letter
                )
            if project.ask_safety:
                self.fields[f"safe-{response.pk}"] = _choice({1: "Safe", 0: "Unsafe"}, "Safety", letter)
        if project.ask_preference and len(responses) == 2:
            self.fields["preference"] = _choice(PREFERENCE_TEXTS, "Which response is better?")

    def sheets(self) -> list[dict[str, Any]]:
        """Of each response: its letter, itself, and its bound fields, as the template shows them."""
        return [
            {
                "letter": letter,
                "response": response,
                "attributes": [self._row(attribute, response) for attribute in self.attributes],
                "extra": [
                    self[name] for name in (f"confidence-{response.pk}", f"safe-{response.pk}") if name in self.fields
                ],
            }
            for letter, response in zip(ascii_uppercase, self.responses, strict=False)
        ]

    def _row(self, attribute: Attribute, response: Response) -> dict[str, Any]:
        checks = f"checks-{attribute.key}-{response.pk}"
        return {
            "attribute": attribute,
            "field": self[f"{attribute.key}-{response.pk}"],
            "checks": self[checks] if checks in self.fields else None,
        }

    def submission(self) -> Submission:
        """What a valid form says. The preference is relative to the order in which the responses are shown."""
        return Submission(
            ratings={response.pk: self._rating(response) for response in self.responses},
            preference=self.cleaned_data.get("preference"),
            justification=self.cleaned_data["justification"],
            active_seconds=self.cleaned_data["active_seconds"],
        )

    def _rating(self, response: Response) -> ResponseRating:
        data = self.cleaned_data
        safe = data.get(f"safe-{response.pk}")
        return ResponseRating(
            scores={each.key: data[f"{each.key}-{response.pk}"] for each in self.attributes},
            checks=tuple(
                check for each in self.attributes for check in data.get(f"checks-{each.key}-{response.pk}", [])
            ),
            confidence=data.get(f"confidence-{response.pk}"),
            safe=None if safe is None else bool(safe),
        )


def _likert(attribute: Attribute, letter: str) -> forms.TypedChoiceField:
    """Levels 1 to 5 on the page, 0 to 4 in the data."""
    choices = [(level, text) for level, text in zip(range(LEVELS), attribute.levels, strict=True)]
    return forms.TypedChoiceField(
        choices=choices,
        coerce=int,
        label=attribute.name,
        widget=forms.RadioSelect,
        error_messages={"required": f"Response {letter}: {attribute.name} has no answer yet."},
    )


def _checks(attribute: Attribute) -> forms.MultipleChoiceField:
    return forms.MultipleChoiceField(
        choices=[tuple(check) for check in attribute.checks], required=False, widget=forms.CheckboxSelectMultiple
    )


def _choice(texts: dict[int, str], label: str, letter: str = "") -> forms.TypedChoiceField:
    return forms.TypedChoiceField(
        choices=list(texts.items()),
        coerce=int,
        label=label,
        widget=forms.RadioSelect,
        error_messages={"required": f"{f'Response {letter}: ' if letter else ''}{label} has no answer yet."},
    )
