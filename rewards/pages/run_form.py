"""The form that starts a training run: the settings that people change first, and all others folded away.

Only settings that differ from what the project would use anyway are sent, and the same function checks them as over
REST.
"""

import dataclasses
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.forms import BoundField
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotator.infrastructure.refusals import Refusal
from annotator.managing.setting_table import STAGES
from annotator.models import Project
from rewards.learning.config import (
    DEVICES,
    PATH_SETTINGS,
    PRECISIONS,
    SCHEDULES,
    TARGETS,
    UPPER_BOUNDS,
    TrainConfig,
)
from rewards.runs import run_settings
from rewards.runs.setting_texts import SETTINGS

FIRST = ("backbone", "stages", "method", "epochs")
QUICK, FINE_TUNE = "quick", "fine_tune"
METHODS = (
    (FINE_TUNE, gettext_lazy("Fine-tune the language model")),
    (QUICK, gettext_lazy("Quick: leave the language model as it is")),
)
CHOICES: Mapping[str, tuple[str, ...]] = {
    "targets": TARGETS,
    "schedule": SCHEDULES,
    "device": DEVICES,
    "precision": PRECISIONS,
}
WEIGHT = "weight-"


class RunForm(forms.Form):
    """A field for each setting of the trainer; `config` returns those that were changed."""

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, label_suffix="", **kwargs)  # type: ignore[misc]
        self.project = project
        self.usual = _usual(project)
        self.attributes = project.attributes_for()
        hints = typing.get_type_hints(TrainConfig)
        self.fields["backbone"] = forms.ChoiceField(choices=[(name, name) for name in settings.REWARD_BACKBONES])
        usual = self.usual["stages"]
        own = ",".join(map(str, usual)) if isinstance(usual, list) else ""
        known = {**STAGES} if own in STAGES or not own else {own: own.replace(",", ", "), **STAGES}
        self.fields["stages"] = forms.ChoiceField(choices=list(known.items()))
        self.fields["method"] = forms.ChoiceField(
            choices=METHODS,
            label=gettext_lazy("How to learn"),
            help_text=gettext_lazy(
                "The quick way fits only the last step and takes seconds to minutes. Fine-tuning takes longer, and is "
                "kept only if it is better."
            ),
            initial=FINE_TUNE if self.usual["epochs"] else QUICK,
        )
        for name in SETTINGS:
            if name not in (*self.fields, "attribute_weights"):
                self.fields[name] = setting_field(name, hints[name], UPPER_BOUNDS)
        for attribute in self.attributes:
            self.fields[WEIGHT + attribute.key] = forms.FloatField(
                required=False, label=attribute.shown_name, initial=self.usual["attribute_weights"].get(attribute.key)
            )
        for name, words in SETTINGS.items():
            if name in self.fields:
                field = self.fields[name]
                field.label, field.help_text = _(words.label), _(words.help)
                value = self.usual[name]
                if name == "stages":
                    value = ",".join(value)
                elif isinstance(value, list):
                    value = ", ".join(f"{one:.12g}" for one in value)
                field.initial = value
        # The quick way has no epochs to go through, so a fine-tuning is suggested with the trainer's own number.
        self.fields["epochs"].initial = self.usual["epochs"] or TrainConfig.epochs

    def first(self) -> Iterator[BoundField]:
        """Yields the fields that people change first."""
        return (self[name] for name in FIRST)

    def others(self) -> Iterator[BoundField]:
        """Yields the fields that are folded away, but the weights of the attributes."""
        return (self[name] for name in self.fields if name not in FIRST and not name.startswith(WEIGHT))

    def weights(self) -> Iterator[BoundField]:
        """Yields the fields of the attributes' weights."""
        return (self[name] for name in self.fields if name.startswith(WEIGHT))

    def weights_sentence(self) -> str:
        """Returns what the weights mean."""
        words = SETTINGS["attribute_weights"]
        return _(words.help)

    def opens_others(self) -> bool:
        """Returns whether something is wrong in a field that is folded away."""
        return any(name not in FIRST for name in self.errors if name != "__all__")

    def clean(self) -> dict[str, Any]:
        super().clean()
        weights = {
            attribute.key: self.cleaned_data[WEIGHT + attribute.key]
            for attribute in self.attributes
            if self.cleaned_data.get(WEIGHT + attribute.key) is not None
        }
        if weights and len(weights) < len(self.attributes):
            for attribute in self.attributes:
                if attribute.key not in weights and WEIGHT + attribute.key not in self.errors:
                    self.add_error(WEIGHT + attribute.key, _("Fill in the weights of all attributes, or none."))
        self.cleaned_data["attribute_weights"] = weights
        return self.cleaned_data

    def config(self) -> dict[str, Any]:
        """Returns the settings that differ from the usual ones, as the trainer reads them."""
        given: dict[str, Any] = {name: self.cleaned_data[name] for name in SETTINGS if name in self.cleaned_data}
        given["stages"] = given["stages"].split(",")
        if self.cleaned_data["method"] == QUICK:
            given["epochs"] = 0
        # A field that was emptied asks for the usual value.
        return {name: value for name, value in given.items() if value is not None and value != self.usual[name]}

    def refuse(self, refused: Refusal) -> None:
        """Shows a refusal at the setting that it names, else above the form."""
        name = refused.setting if isinstance(refused, run_settings.UnusableConfig) else ""
        self.add_error(name if name in self.fields else None, str(refused))


def _usual(project: Project) -> dict[str, Any]:
    """Returns every setting as a run of the project would have it that asks for nothing."""
    defaults = {
        field.name: field.default_factory() if callable(field.default_factory) else field.default
        for field in dataclasses.fields(TrainConfig)
        if field.name not in PATH_SETTINGS
    }
    usual = defaults | run_settings.settled(project, {})
    return {name: list(value) if isinstance(value, tuple) else value for name, value in usual.items()}


def setting_field(name: str, hint: Any, bounds: Mapping[str, float]) -> forms.Field:
    """Returns a field for a setting of the type `hint`, which may be left empty."""
    most = bounds.get(name)
    if name in CHOICES:
        return forms.ChoiceField(choices=[(value, value) for value in CHOICES[name]])
    if hint is bool:
        return forms.BooleanField(required=False)
    if hint is int:
        return forms.IntegerField(required=False, min_value=0, max_value=None if most is None else int(most))
    if hint is float:
        return forms.FloatField(required=False, min_value=0, max_value=most, widget=forms.NumberInput({"step": "any"}))
    return _Numbers(required=False)


class _Numbers(forms.CharField):
    """Numbers, separated by commas."""

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        try:
            return [float(part) for part in text.replace(";", ",").split(",") if part.strip()] or None
        except ValueError:
            raise forms.ValidationError(_("Write numbers, separated by commas.")) from None
