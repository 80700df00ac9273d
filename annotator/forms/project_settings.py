"""The form of a project's settings, in the groups in which people think of them, and the form that confirms a deletion.

Settings that the trainer shares with every run are fields of their own where they are common; the rest is JSON.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django import forms
from django.conf import settings
from django.db.models import Q
from django.http import QueryDict
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from annotator.models import Attribute, Project, Rubric
from annotator.projects import project_settings
from annotator.projects.settings_check import is_rated
from annotator.stale_edits import FIELD, sealed, unsealed

LARGEST = 2_147_483_647
LONGEST_JSON = 20_000
STAGES = ("regression", "bradley_terry", "margin", "scaled", "joint")
_STAGE_CHOICES = [
    ("", _("The trainer's default")),
    ("regression", _("Regression on the attributes")),
    ("regression,scaled", _("Regression, then scaled Bradley-Terry on preferences")),
    ("regression,bradley_terry", _("Regression, then Bradley-Terry on preferences")),
    ("bradley_terry", _("Bradley-Terry on preferences")),
    ("scaled", _("Scaled Bradley-Terry on preferences")),
    ("joint", _("Both at once")),
]


@dataclass(frozen=True)
class Group:
    """Fields under one heading, with a sentence beneath it."""

    key: str
    title: Any
    names: tuple[str, ...]
    sentence: Any = ""


OF_SEGMENTS = ("segment_unit", "allow_recut", "spread_share")
"""Settings that change nothing where no attribute is about segments."""
GROUPS = (
    Group("named", _("Name and rubric"), ("name", "slug", "description", "rubric")),
    Group(
        "asked",
        _("What is asked"),
        (
            "ask_preference",
            "allow_ties",
            "ask_safety",
            "ask_confidence",
            "ask_feedback",
            "ask_edit",
            "ask_language",
            "domains",
            "segment_unit",
            "allow_recut",
        ),
        _("Besides the scales of the rubric."),
    ),
    Group(
        "protocol",
        _("Protocol"),
        (
            "base_annotators",
            "max_annotators",
            "escalate_above",
            "keep",
            "drop_above",
            "spread_attribute",
            "spread_share",
            "spread_scope",
        ),
        _("How many people rate a task, and how their ratings become a label. A change applies to every task."),
    ),
    Group("pace", _("Handing out tasks"), ("paused", "quota", "lease_minutes")),
    Group(
        "gold",
        _("Qualification and gold tasks"),
        (
            "qualification_required",
            "qualification_threshold",
            "qualification_tries",
            "gold_every",
            "gold_window",
            "gold_threshold",
        ),
        _("Gold tasks have an expert's rating. They are imported like other tasks."),
    ),
    Group(
        "retraining",
        _("Retraining"),
        (
            "retrain_after_labels",
            "retrain_after_hours",
            "retrain_cooldown_minutes",
            "promote_automatically",
            "review_unlikely_percent",
            "validation_share",
        ),
        _("When a reward model is trained on the labels, and what happens to it afterwards."),
    ),
    Group(
        "trainer",
        _("Trainer"),
        ("backbone", "stages", "epochs", "learning_rate", "max_length", "lora_rank", "max_hours", "further"),
        _("These hold for every run. A field that is left empty takes the trainer's default."),
    ),
)
COMMON = ("backbone", "stages", "epochs", "learning_rate", "max_length", "lora_rank", "max_hours")


class DomainsField(forms.CharField):
    """Domains with commas between them; the project's rules say which there may be."""

    def __init__(self) -> None:
        super().__init__(
            label=_("Domains to choose from"),
            required=False,
            max_length=600,
            help_text=_("With commas between them, such as General, STEM, Code. Empty: the domain is not asked for."),
        )

    def clean(self, value: Any) -> list[str]:
        return [domain.strip() for domain in super().clean(value).split(",") if domain.strip()]

    def prepare_value(self, value: Any) -> str:
        return ", ".join(value) if isinstance(value, list) else value


class ProjectSettingsForm(forms.ModelForm):  # type: ignore[type-arg]
    """Every setting of a project. `seen` holds the settings as the page showed them, signed."""

    backbone = forms.ChoiceField(
        required=False,
        label=_("Language model"),
        help_text=_("The network that reads the texts. The operator lists them."),
    )
    stages = forms.ChoiceField(
        required=False, choices=_STAGE_CHOICES, label=_("Objective"), help_text=_("What the model learns from.")
    )
    epochs = forms.IntegerField(
        required=False, min_value=0, label=_("Epochs"), help_text=_("How often each stage goes through the data.")
    )
    learning_rate = forms.FloatField(
        required=False,
        min_value=0,
        label=_("Learning rate"),
        help_text=_("The size of the optimizer's steps, such as 0.00002."),
        widget=forms.NumberInput(attrs={"step": "any"}),
    )
    max_length = forms.IntegerField(
        required=False, min_value=1, label=_("Longest text"), help_text=_("In tokens. Longer conversations are cut.")
    )
    lora_rank = forms.IntegerField(
        required=False,
        min_value=0,
        label=_("LoRA rank"),
        help_text=_("Trains small adapters of this rank; 0 trains every weight."),
    )
    max_hours = forms.FloatField(
        required=False,
        min_value=0,
        label=_("Hours for a run"),
        help_text=_("A run that works longer is ended; 0 means as long as the operator allows."),
        widget=forms.NumberInput(attrs={"step": "any"}),
    )
    further = forms.CharField(
        required=False,
        max_length=LONGEST_JSON,
        label=_("Further settings of the trainer"),
        help_text=_('A JSON object, such as {"seed": 7}. The documentation of training lists them.'),
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "class": "code"}),
    )
    seen = forms.CharField(widget=forms.HiddenInput, required=False)
    domains = DomainsField()

    class Meta:
        model = Project
        fields = (
            "name",
            "slug",
            "description",
            "rubric",
            "ask_preference",
            "allow_ties",
            "ask_safety",
            "ask_confidence",
            "ask_feedback",
            "ask_edit",
            "ask_language",
            "domains",
            "segment_unit",
            "allow_recut",
            "base_annotators",
            "max_annotators",
            "escalate_above",
            "keep",
            "drop_above",
            "spread_attribute",
            "spread_share",
            "spread_scope",
            "paused",
            "quota",
            "lease_minutes",
            "qualification_required",
            "qualification_threshold",
            "qualification_tries",
            "gold_every",
            "gold_window",
            "gold_threshold",
            "retrain_after_labels",
            "retrain_after_hours",
            "retrain_cooldown_minutes",
            "promote_automatically",
            "review_unlikely_percent",
            "validation_share",
        )
        labels = {
            "name": _("Name"),
            "slug": _("Name in addresses"),
            "description": _("Purpose"),
            "rubric": _("Rubric"),
            "ask_preference": _("Ask which response is better"),
            "allow_ties": _("Offer “equally good” as an answer"),
            "ask_safety": _("Ask whether each response is safe"),
            "ask_confidence": _("Ask how sure the annotator is"),
            "ask_feedback": _("Ask for written feedback on each response"),
            "ask_edit": _("Offer to write a better version of a response"),
            "ask_language": _("Ask for the language"),
            "base_annotators": _("Annotators for each task"),
            "max_annotators": _("At most"),
            "escalate_above": _("Ask more above a spread of"),
            "keep": _("Annotations kept"),
            "drop_above": _("Drop above a spread of"),
            "spread_attribute": _("Attribute whose spread decides"),
            "spread_share": _("Share of segments that may differ more"),
            "segment_unit": _("Segments are"),
            "allow_recut": _("Annotators may join and split segments"),
            "spread_scope": _("Annotations whose spread drops a task"),
            "paused": _("Paused"),
            "quota": _("Tasks for one annotator"),
            "lease_minutes": _("Minutes until a task goes back"),
            "qualification_required": _("Annotators must pass a test first"),
            "qualification_threshold": _("Kappa that passes the test"),
            "qualification_tries": _("Tries"),
            "gold_every": _("One gold task in"),
            "gold_window": _("Gold tasks that are judged"),
            "gold_threshold": _("Kappa below which annotators are paused"),
            "retrain_after_labels": _("Retrain after new labels"),
            "retrain_after_hours": _("Retrain after hours"),
            "retrain_cooldown_minutes": _("Minutes between runs"),
            "promote_automatically": _("A better model takes over by itself"),
            "review_unlikely_percent": _("Percent of annotations sent to review"),
            "validation_share": _("Share of prompts held out"),
        }
        help_texts = {
            "slug": _("It stands in the addresses of this project's pages. Links to the old addresses stop working."),
            "description": _("What the ratings are for. Everybody in the project sees it."),
            "rubric": _("It cannot be replaced once something has been rated."),
            "ask_preference": _("Annotators choose between two responses, or rank more than two."),
            "ask_safety": _("A response may be marked as unsafe and is rated all the same."),
            "ask_confidence": _("Three levels: very sure, somewhat sure and not sure."),
            "ask_feedback": _("A text on what is good and bad about it. It is required."),
            "ask_edit": _("Nobody has to. A manager can have the edits rated as responses."),
            "ask_language": _("The language that the task is in, besides the one it may have come with."),
            "spread_attribute": _("The spread is the difference between the highest and the lowest rating."),
            "spread_share": _(
                "For an aspect of segments. 0: one segment with a wider spread is enough; 0.2: a fifth of a response's "
                "segments may have one."
            ),
            "segment_unit": _(
                "What annotators rate one by one, if the rubric has attributes of segments. Responses that somebody "
                "has been given to rate keep their segments."
            ),
            "allow_recut": _("Ratings of different segments are compared on the finest cut that they have in common."),
            "promote_automatically": _("Otherwise a better model waits for a manager's decision."),
        }
        widgets = {"description": forms.Textarea(attrs={"rows": 2})}

    def __init__(self, project: Project, data: QueryDict | None = None) -> None:
        config = dict(project.training_config)
        stages = config.get("stages")
        usual = isinstance(stages, list) and ",".join(map(str, stages)) in dict(_STAGE_CHOICES)
        common = {name: config.pop(name) for name in COMMON if name in config and (name != "stages" or usual)}
        if "stages" in common:
            common["stages"] = ",".join(common["stages"])
        shown = {
            **common,
            "further": json.dumps(config, indent=2) if config else "",
            "seen": sealed(self.settings_of(project)),
        }
        super().__init__(data, instance=project, initial=shown, label_suffix="")
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
        return project_settings.as_seen(project, (*cls.Meta.fields, "training_config"))

    def groups(self) -> Iterator[tuple[Group, list[forms.BoundField]]]:
        for group in GROUPS:
            yield group, [self[name] for name in group.names if name in self.fields]

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
        data["training_config"] = further | common
        return data

    def _post_clean(self) -> None:
        """Leaves the model's rules to the stage: Django would check settings that stay as they are, and set them."""

    def changes(self) -> dict[str, Any]:
        """Returns the settings that the form changes, seen from what its page showed."""
        shown = self.shown()
        known = (*self.Meta.fields, "training_config")
        now = {name: self.cleaned_data[name] for name in known if name in self.cleaned_data}
        return {name: value for name, value in now.items() if getattr(value, "pk", value) != shown[name]}

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
