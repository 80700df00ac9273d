"""The hidden fields in which a form carries what its page showed, and what a refused edit shows of both sides."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import QueryDict
from django.template.defaultfilters import yesno
from django.utils.translation import gettext as _

from annotator.infrastructure.stale_edits import FIELD, ChangedMeanwhile, unsealed


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


class SeenFieldsForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form of the admin: it carries what its page showed of each field, and stores the fields that its user changed.

    A field that somebody else has changed too is refused with both values: theirs in the sentence, the user's own in
    the field. Sent again, the form replaces theirs. Django would compare with what is stored by then, and take what
    somebody else has changed meanwhile for a change of this form.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            omits = field.hidden_widget().value_omitted_from_data  # as what a program sends may do
            missing = self.is_bound and omits(self.data, self.files, self._shown_as(name))
            field.show_hidden_initial = not (missing or field.disabled or field.widget.is_hidden)

    def _shown_as(self, name: str) -> str:
        return str(self.add_initial_prefix(name))

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if changed := [name for name in self.changed_data if self.fields[name].show_hidden_initial]:
            self._require_as_seen(changed)
        return data

    def _require_as_seen(self, changed: list[str]) -> None:
        """Adds an error to each of these fields that is no longer stored as the page showed it."""
        stored: dict[str, Any] = {}
        if self.instance.pk:
            # Locked, so that of two who save at once the second is compared with the first.
            rows = type(self.instance)._default_manager.select_for_update(no_key=True)
            stored["instance"] = rows.get(pk=self.instance.pk)
        fresh = type(self)(**stored)
        for name in changed:
            field, now = self.fields[name], fresh[name].initial
            shown = field.hidden_widget().value_from_datadict(self.data, self.files, self._shown_as(name))
            if not (field.has_changed(now, shown) and field.has_changed(now, self[name].data)):
                continue
            text = _("Somebody else has chosen %(value)s meanwhile. Save again to replace it.")
            self.add_error(name, text % {"value": _in_words(field, now) or "–"})
            value = "" if now is None else field.prepare_value(now)
            sent = QueryDict(mutable=True)
            sent.update(self.data)
            sent.setlist(self._shown_as(name), value if isinstance(value, list) else [value])
            self.data = sent


def _in_words(field: forms.Field, value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "" if value is None else str(yesno(value))
    if not isinstance(field, forms.ChoiceField):
        return str(field.prepare_value(value))
    choices: dict[Any, Any] = dict(field.choices)  # type: ignore[arg-type]
    return ", ".join(str(choices.get(one, one)) for one in (value if isinstance(value, list) else [value]))
