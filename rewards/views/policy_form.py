"""The form that starts a policy run: what people choose first, and all other settings folded away.

Only settings that differ from the usual ones are sent, and the same function checks them as over REST.
"""

import dataclasses
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from django import forms
from django.forms import BoundField
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotator.models import Project
from annotator.refusals import Refusal
from rewards.learning.aligning.config import (
    ALIGNING_BOUNDS,
    DPO,
    DPO_1D,
    DPO_2D,
    IDENTITY,
    INVERTED,
    SFT,
    STEERLM,
    AlignConfig,
)
from rewards.models import Snapshot
from rewards.policies.bases import bases
from rewards.policies.setting_texts import SETTINGS
from rewards.run_settings import UnusableConfig
from rewards.views.run_form import setting_field

FIRST = ("policy", "method", "snapshot", "beta", "epochs", "learning_rate", "seed")
NEEDED = ("policy", "method")
METHODS: Mapping[str, Any] = {
    DPO: gettext_lazy("DPO: prefer the better of two responses"),
    DPO_1D: gettext_lazy("DPO 1D: the same, with a weight for each segment"),
    DPO_2D: gettext_lazy("DPO 2D: best segments against worst segments"),
    SFT: gettext_lazy("SFT: imitate the better response"),
    STEERLM: gettext_lazy("SteerLM: learn the levels of attributes, then ask for high ones"),
}
REJECTED = ((INVERTED, gettext_lazy("inverted")), (IDENTITY, gettext_lazy("identity")))
SNAPSHOTS_OFFERED = 10
ASPECT, REQUESTED = "aspect-", "requested-"
BY_NAME = {"aspect_weights": ASPECT, "requested": REQUESTED}
"""Settings that have a field for each aspect or attribute."""


class PolicyForm(forms.Form):
    """A field for each setting of an alignment; `config` returns those that were changed."""

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, label_suffix="", **kwargs)  # type: ignore[misc]
        usable = project.snapshots.filter(marked_at=None, erasing_at=None, erased_at=None)
        self.snapshots = list(usable.defer("manifest").order_by("-pk")[:SNAPSHOTS_OFFERED])
        hints, usual = typing.get_type_hints(AlignConfig), _usual()
        self.fields["policy"] = forms.ChoiceField(choices=[(name, name) for name in bases()])
        self.fields["method"] = forms.ChoiceField(choices=list(METHODS.items()))
        self.fields["snapshot"] = forms.ChoiceField(
            required=False,
            label=gettext_lazy("Learn from"),
            help_text=gettext_lazy("The labels in force, or those that an earlier run had."),
            choices=[("", _("labels as they are now")), *((str(row.pk), _words(row)) for row in self.snapshots)],
        )
        self.fields["rejected_weight"] = forms.ChoiceField(choices=REJECTED)
        for name, words in SETTINGS.items():
            if name in BY_NAME:
                continue
            if name not in self.fields:
                self.fields[name] = setting_field(name, hints[name], ALIGNING_BOUNDS)
            field = self.fields[name]
            field.label, field.help_text, field.initial = _(words.label), _(words.help), usual.get(name)
        self.aspects = [(attribute.key, attribute.shown_name) for attribute in project.attributes_for("segment")]
        self.attributes = [(attribute.key, attribute.shown_name) for attribute in project.attributes_for()]
        for prefix, named in ((ASPECT, self.aspects), (REQUESTED, self.attributes)):
            for key, title in named:
                self.fields[prefix + key] = forms.FloatField(required=False, min_value=0, label=title)

    def first(self) -> Iterator[BoundField]:
        """Yields the fields that people choose first."""
        return (self[name] for name in FIRST)

    def others(self) -> Iterator[BoundField]:
        """Yields the fields that are folded away, but those for each aspect or attribute."""
        return (self[name] for name in self.fields if name not in FIRST and not name.startswith((ASPECT, REQUESTED)))

    def groups(self) -> Iterator[tuple[str, str, list[BoundField]]]:
        """Yields the settings that have a field for each aspect or attribute: title, sentence, fields."""
        for name, prefix in BY_NAME.items():
            fields = [self[field] for field in self.fields if field.startswith(prefix)]
            if fields:
                yield _(SETTINGS[name].label), _(SETTINGS[name].help), fields

    def opens_others(self) -> bool:
        """Returns whether something is wrong in a field that is folded away."""
        return any(name not in FIRST for name in self.errors if name != "__all__")

    def config(self) -> dict[str, Any]:
        """Returns the base, the method and the settings that differ from the usual ones."""
        usual = _usual()
        # A field that was emptied asks for the usual value.
        changed = {
            name: self.cleaned_data[name]
            for name in SETTINGS
            if name in NEEDED or self.cleaned_data.get(name) not in (None, "", usual.get(name))
        }
        for name, prefix in BY_NAME.items():
            values = {
                key.removeprefix(prefix): value for key, value in self.cleaned_data.items() if key.startswith(prefix)
            }
            if given := {key: value for key, value in values.items() if value is not None}:
                changed[name] = given
        return changed

    def snapshot(self) -> Snapshot | None:
        """Returns the chosen snapshot; None for the labels of now."""
        chosen = self.cleaned_data["snapshot"]
        return next((row for row in self.snapshots if str(row.pk) == chosen), None)

    def refuse(self, refused: Refusal) -> None:
        """Shows a refusal at the setting that it names, else above the form."""
        name = refused.setting if isinstance(refused, UnusableConfig) else ""
        self.add_error(name if name in self.fields else None, str(refused))


def _usual() -> dict[str, Any]:
    defaults = ((field.name, field.default) for field in dataclasses.fields(AlignConfig))
    return {name: value for name, value in defaults if value is not dataclasses.MISSING} | {"method": DPO}


def _words(snapshot: Snapshot) -> str:
    words = {"time": date_format(snapshot.created_at, "SHORT_DATETIME_FORMAT"), "hash": snapshot.content_hash[:12]}
    return _("the snapshot of %(time)s (%(hash)s)") % words
