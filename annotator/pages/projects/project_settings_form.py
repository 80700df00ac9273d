"""The form of a project's settings, in the groups in which people think of them, and the form that confirms a deletion.

Settings that the trainer shares with every run are fields of their own where they are common; the rest is JSON.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.db.models import Q
from django.http import QueryDict
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from annotator.infrastructure.stale_edits import FIELD, sealed, unsealed
from annotator.managing import project_settings
from annotator.managing.setting_table import COMMON, GROUPS, NAMES, OF_SEGMENTS, STAGES, TRAINER, Group
from annotator.managing.settings_check import is_rated
from annotator.models import Attribute, Project, Rubric

LONGEST_JSON = 20_000
_TRAINER = Group(
    "trainer",
    _("Trainer"),
    (),
    _("These hold for every run. A field that is left empty takes the trainer's default."),
)
SHOWN = (*((group, group.names) for group in GROUPS), (_TRAINER, (*COMMON, "further")))
"""The groups of the page with the names of their fields."""


class DomainsField(forms.CharField):
    """Domains with commas between them; the project's rules say which there may be."""

    def __init__(self, *, base_field: Any, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, "max_length": 600})

    def clean(self, value: Any) -> list[str]:
        return [domain.strip() for domain in super().clean(value).split(",") if domain.strip()]

    def prepare_value(self, value: Any) -> str:
        return ", ".join(value) if isinstance(value, list) else value


class ProjectSettingsForm(forms.ModelForm):  # type: ignore[type-arg]
    """Every setting of a project. `seen` holds the settings as the page showed them, signed."""

    backbone = forms.ChoiceField(required=False)
    stages = forms.ChoiceField(required=False, choices=[("", _("The trainer's default")), *STAGES.items()])
    epochs = forms.IntegerField(required=False, min_value=0)
    learning_rate = forms.FloatField(required=False, min_value=0, widget=forms.NumberInput({"step": "any"}))
    max_length = forms.IntegerField(required=False, min_value=1)
    lora_rank = forms.IntegerField(required=False, min_value=0)
    max_hours = forms.FloatField(required=False, min_value=0, widget=forms.NumberInput({"step": "any"}))
    further = forms.CharField(
        required=False,
        max_length=LONGEST_JSON,
        label=_("Further settings of the trainer"),
        help_text=_('A JSON object, such as {"seed": 7}. The documentation of training lists them.'),
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "class": "code"}),
    )
    seen = forms.CharField(widget=forms.HiddenInput, required=False)

    class Meta:
        model = Project
        fields = NAMES
        field_classes: ClassVar = {"domains": DomainsField}
        widgets = {"description": forms.Textarea(attrs={"rows": 2})}

    def __init__(self, project: Project, data: QueryDict | None = None) -> None:
        config = dict(project.training_config)
        stages = config.get("stages")
        usual = isinstance(stages, list) and ",".join(map(str, stages)) in STAGES
        common = {name: config.pop(name) for name in COMMON if name in config and (name != "stages" or usual)}
        if "stages" in common:
            common["stages"] = ",".join(common["stages"])
        shown = {
            **common,
            "further": json.dumps(config, indent=2) if config else "",
            "seen": sealed(self.settings_of(project)),
        }
        super().__init__(data, instance=project, initial=shown, label_suffix="")
        for name, text in COMMON.items():
            self.fields[name].label, self.fields[name].help_text = gettext(text.label), gettext(text.help)
        self.before = self.settings_of(project)
        rubric, backbone = self.fields["rubric"], self.fields["backbone"]
        assert isinstance(rubric, forms.ModelChoiceField)
        assert isinstance(backbone, forms.ChoiceField)
        choices = Rubric.objects.offered().filter(made_by=None)
        rubric.queryset = Rubric.objects.filter(Q(pk__in=choices) | Q(pk=project.rubric_id)).order_by("name")
        rubric.empty_label = None
        rubric.disabled = is_rated(project)
        default = gettext("The operator's default: %(name)s") % {"name": settings.REWARD_BACKBONE}
        backbone.choices = [("", default), *((name, name) for name in settings.REWARD_BACKBONES)]
        if not any(one.scope == Attribute.Scope.SEGMENT for one in self._attributes(project)):
            for name in OF_SEGMENTS:
                # Selected words are cut by the unit, too.
                if not (name == "segment_unit" and project.learn_evidence):
                    del self.fields[name]
        self.fields["spread_attribute"] = forms.ChoiceField(
            label=self.fields["spread_attribute"].label,
            help_text=self.fields["spread_attribute"].help_text,
            choices=[(one.key, gettext(one.name)) for one in self._attributes(project)],
            error_messages={"invalid_choice": _("The rubric has no such attribute. Choose one of these.")},
        )

    def _attributes(self, project: Project) -> Iterable[Attribute]:
        """Returns the attributes of the rubric that is chosen in the form."""
        rubric = self.fields["rubric"]
        with suppress(forms.ValidationError):
            if self.is_bound and not rubric.disabled:
                chosen: Rubric = rubric.clean(self["rubric"].data)
                return chosen.attributes.order_by("scope", "position")
        return project.every_attribute()

    @classmethod
    def settings_of(cls, project: Project) -> dict[str, Any]:
        return project_settings.as_seen(project, (*NAMES, TRAINER))

    def groups(self) -> Iterator[tuple[Group, list[forms.BoundField]]]:
        for group, names in SHOWN:
            yield group, [self[name] for name in names if name in self.fields]

    def clean_further(self) -> dict[str, Any]:
        text = self.cleaned_data["further"].strip()
        try:
            config = json.loads(text) if text else {}
        except (ValueError, RecursionError) as wrong:
            raise forms.ValidationError(gettext("This is not JSON: %(error)s") % {"error": wrong}) from wrong
        if not isinstance(config, dict):
            raise forms.ValidationError(gettext('Write an object, such as {"seed": 7}.'))
        return config

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        further = data.get("further", {})
        common = {name: data[name] for name in COMMON if data.get(name) not in (None, "")}
        if "stages" in common:
            common["stages"] = common["stages"].split(",")
        if twice := sorted(further.keys() & common.keys()):
            said = gettext("It has a field of its own: %(names)s.") % {"names": ", ".join(twice)}
            self.add_error("further", said)
        data[TRAINER] = further | common
        return data

    def _post_clean(self) -> None:
        """Leaves the model's rules to the stage: Django would check settings that stay as they are, and set them."""

    def changes(self) -> dict[str, Any]:
        """Returns the settings that the form changes, seen from what its page showed."""
        shown = self.shown()
        now = {name: self.cleaned_data[name] for name in (*NAMES, TRAINER) if name in self.cleaned_data}
        values = {name: value.pk if isinstance(value, Rubric) else value for name, value in now.items()}
        return {name: value for name, value in now.items() if values[name] != shown[name]}

    def shown(self) -> Mapping[str, Any]:
        """Returns the settings as the page showed them, or as they are where the page does not say."""
        shown = unsealed(self.data.get(FIELD, ""))
        return {name: shown.get(name, value) for name, value in self.before.items()}


class DeleteProjectForm(forms.Form):
    """The project's name, typed by hand before the project is deleted."""

    confirm = forms.CharField(
        max_length=120,
        label=_("The project's name"),
        label_suffix="",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
