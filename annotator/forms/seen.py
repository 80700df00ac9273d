"""The hidden field in which a form carries what its page showed, and what a refused edit shows of both sides."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import QueryDict

from annotator.stale_edits import FIELD, ChangedMeanwhile, unsealed


class SeenField(forms.CharField):
    """Becomes the values that the page showed; none where the form has no such field."""

    def __init__(self) -> None:
        super().__init__(widget=forms.HiddenInput, required=False, label_suffix="")

    def to_python(self, value: Any) -> dict[str, Any]:  # type: ignore[override]
        return unsealed(super().to_python(value) or "")

    def run_validators(self, value: Any) -> None:
        """Nothing to check: what this server has not signed is no value."""


@dataclass(frozen=True)
class Theirs:
    """What somebody else has changed since the page was read."""

    label: str
    before: Any
    after: Any
    also_mine: bool


def theirs(form: forms.Form, fresh: forms.Form, stale: ChangedMeanwhile) -> list[Theirs]:
    """Returns what the others have changed, and sets the refused form up to be sent again over their values.

    `fresh` is the form of what is stored now. What the user has changed stays in the form, the rest follows the others.
    """
    shown: Mapping[str, Any] = form.cleaned_data[FIELD]
    mine = {name for name in fresh.fields if name in shown and form.cleaned_data.get(name) != shown[name]}
    changes = [
        Theirs(str(fresh.fields[name].label), shown[name], fresh.initial[name], also_mine=name in mine)
        for name in stale.names
    ]
    sent = QueryDict(mutable=True)
    sent.update(form.data)
    for name in fresh.fields:
        if name not in mine:
            values = fresh.fields[name].prepare_value(fresh.initial.get(name))
            sent.setlist(name, values if isinstance(values, list) else [] if values in (None, False) else [values])
    form.data = sent
    return changes
