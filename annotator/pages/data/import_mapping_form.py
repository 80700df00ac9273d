"""The form that says which column of an uploaded file is which field of a task."""

import json
from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotator.stages.importing.mapped_rows import is_there
from annotator.stages.importing.mappings import (
    IGNORED,
    KEPT,
    LONGEST_COLUMN,
    LOWEST,
    PERSON,
    BadMapping,
    ColumnMapping,
    mapping_of_text,
    read_mapping,
)

OWN_FIELDS = ("prompt", "messages", "id", "language", "priority", "metadata")
SENT = "mapped"
"""The parameter that says that the form was filled in: a page without it shows the file's own layout."""
_HIDDEN = ("votes", PERSON, LOWEST, "questions", "fitting_only", "rated_by")
_HIDDEN_OF_RESPONSES = ("id", "scores")
"""What a mapping may say and the form has no fields for: the mapping goes along unseen, and this of it still counts."""


class MappingForm(forms.Form):
    """A choice of columns, with a row for each response and an empty one for the next."""

    prompt = forms.ChoiceField(label=gettext_lazy("Prompt"), required=False)
    messages = forms.ChoiceField(
        label=gettext_lazy("or conversation"),
        required=False,
        help_text=gettext_lazy("A list of turns, each with role and content."),
    )
    prompt_text = forms.CharField(
        label=gettext_lazy("or one prompt for all rows"),
        max_length=2000,
        required=False,
        help_text=gettext_lazy("For files of texts that answer nothing, such as summaries."),
    )
    id = forms.ChoiceField(label=gettext_lazy("Task id"), required=False)
    language = forms.ChoiceField(label=gettext_lazy("Language"), required=False)
    priority = forms.ChoiceField(label=gettext_lazy("Priority"), required=False)
    metadata = forms.ChoiceField(
        label=gettext_lazy("Metadata"), required=False, help_text=gettext_lazy("A column that holds an object.")
    )
    rest = forms.ChoiceField(
        label=gettext_lazy("All other columns"),
        choices=[(KEPT, gettext_lazy("keep as metadata")), (IGNORED, gettext_lazy("ignore"))],
    )
    fewer = forms.BooleanField(
        label=gettext_lazy("Leave out responses whose cell is empty"),
        required=False,
        help_text=gettext_lazy("Otherwise a row with an empty response is refused."),
    )
    more = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, columns: Sequence[str], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, label_suffix="", **kwargs)  # type: ignore[misc]
        # A name that is chosen may also reach into a column, as `answers.0` does.
        of_responses = [f"{name}_{number}" for number in range(len(ascii_uppercase)) for name in ("text", "model")]
        chosen = filter(None, (self._given().get(field) for field in (*OWN_FIELDS, *of_responses)))
        names = dict.fromkeys([*columns, *(name for name in chosen if is_there(name, columns))])
        self.choices = [("", _("none")), *((name, name) for name in names)]
        for name in OWN_FIELDS:
            self.fields[name].choices = self.choices  # type: ignore[attr-defined]
        for number in range(self._rows()):
            letter = ascii_uppercase[number]
            self.fields[f"text_{number}"] = forms.ChoiceField(
                label=_("Response %(letter)s") % {"letter": letter}, choices=self.choices, required=False
            )
            self.fields[f"model_{number}"] = forms.ChoiceField(
                label=_("Model %(letter)s: column") % {"letter": letter},
                choices=self.choices,
                required=False,
            )
            self.fields[f"model_name_{number}"] = forms.CharField(
                label=_("or name of model %(letter)s") % {"letter": letter},
                max_length=LONGEST_COLUMN,
                required=False,
            )

    def _given(self) -> Mapping[str, Any]:
        return self.data if self.is_bound else self.initial

    def _rows(self) -> int:
        filled = [number for number in range(len(ascii_uppercase)) if self._given().get(f"text_{number}")]
        return min(max([2, *(number + 2 for number in filled)]), len(ascii_uppercase))

    @property
    def responses(self) -> list[dict[str, Any]]:
        """The fields of each response, for the page."""
        return [
            {name: self[f"{name}_{number}"] for name in ("text", "model", "model_name")}
            for number in range(self._rows())
        ]

    @property
    def others(self) -> list[Any]:
        return [self[name] for name in ("id", "language", "priority", "metadata", "rest")]

    @property
    def others_are_filled(self) -> bool:
        """Returns whether one of the fields has another value than a new form's."""
        values = [field.value() for field in self.others]
        return any(values[:-1]) or values[-1] == IGNORED

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if sum(bool(cleaned.get(name)) for name in ("prompt", "messages", "prompt_text")) != 1:
            error = _("Choose a column for the prompt, or one for the conversation, or write one prompt for all rows.")
            self.add_error("prompt", error)
        if not any(cleaned.get(f"text_{number}") for number in range(self._rows())):
            self.add_error("text_0", _("Choose the column of at least one response."))
        for number in range(self._rows()):
            if cleaned.get(f"model_{number}") and cleaned.get(f"model_name_{number}"):
                self.add_error(f"model_name_{number}", _("Choose a column or write a name, not both."))
        if not self.errors:
            try:
                self.mapping()
            except BadMapping as bad:
                self.add_error(None, str(bad))
        return cleaned

    def mapping(self) -> ColumnMapping:
        """Returns what a valid form says. Raises BadMapping."""
        values = self.cleaned_data
        more = _more(mapping_of_text(values["more"]).as_json()) if values["more"] else {}
        of_texts = {response["text"]: response for response in more.pop("responses", ())}
        responses = [
            of_texts.get(text, {}) | {key: values[f"{key}_{number}"] for key in ("text", "model", "model_name")}
            for number in range(self._rows())
            if (text := values[f"text_{number}"])
        ]
        own = {name: values[name] for name in (*OWN_FIELDS, "prompt_text", "rest", "fewer")}
        return read_mapping({**more, **own, "responses": responses})


def filled_in(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a mapping's JSON as the form's initial values."""
    values = {name: mapping.get(name, "") for name in (*OWN_FIELDS, "prompt_text")}
    for number, response in enumerate(mapping.get("responses", [])):
        for key in ("text", "model", "model_name"):
            values[f"{key}_{number}"] = response.get(key, "")
    return values | {
        "rest": mapping.get("rest", KEPT),
        "fewer": mapping.get("fewer", False),
        "more": json.dumps(mapping) if _more(mapping) else "",
    }


def _more(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the part of a mapping's JSON that the form has no fields for."""
    responses = [
        {key: response[key] for key in ("text", *_HIDDEN_OF_RESPONSES) if key in response}
        for response in mapping.get("responses", ())
        if any(response.get(key) for key in _HIDDEN_OF_RESPONSES)
    ]
    return {key: mapping[key] for key in _HIDDEN if key in mapping} | ({"responses": responses} if responses else {})
