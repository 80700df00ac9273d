"""The settings of a project: which there are, in the groups in which people think of them, and who sees them over REST.

Their names and what they do stand at the model's fields; what the trainer is given is described here too, because every
run may be asked for it. Forms, serializers, previews and the admin read this table.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from annotator.models import Role


@dataclass(frozen=True)
class Setting:
    """A field of a project. Its managers see it, and with `seen_by` another role as well, and those above that one.

    After a change of one that `recounts`, the labels of all tasks are computed again. One `of_segments` changes nothing
    where no attribute is about segments.
    """

    name: str
    seen_by: Role = Role.MANAGER
    recounts: bool = False
    of_segments: bool = False


@dataclass(frozen=True)
class Group:
    """Settings under one heading, with a sentence beneath it."""

    key: str
    title: Any
    settings: tuple[Setting, ...]
    sentence: Any = ""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(setting.name for setting in self.settings)


def _of(*names: str, seen_by: Role = Role.MANAGER, recounts: bool = False) -> tuple[Setting, ...]:
    return tuple(Setting(name, seen_by, recounts) for name in names)


GROUPS = (
    Group("named", _("Name and rubric"), _of("name", "slug", "description", "rubric", seen_by=Role.ANNOTATOR)),
    Group(
        "asked",
        _("What is asked"),
        (
            *_of("ask_preference", "allow_ties", "ask_safety", "ask_confidence", seen_by=Role.ANNOTATOR),
            *_of("ask_feedback", "ask_edit", "ask_language", "domains", seen_by=Role.ANNOTATOR),
            Setting("segment_unit", Role.ANNOTATOR, of_segments=True),
            Setting("allow_recut", Role.ANNOTATOR, of_segments=True),
        ),
        _("Besides the scales of the rubric."),
    ),
    Group(
        "protocol",
        _("Protocol"),
        (
            *_of("base_annotators", "max_annotators", "escalate_above", seen_by=Role.REVIEWER, recounts=True),
            *_of("keep", "drop_above", "spread_attribute", seen_by=Role.REVIEWER, recounts=True),
            Setting("spread_share", Role.REVIEWER, recounts=True, of_segments=True),
            Setting("spread_scope", Role.REVIEWER, recounts=True),
        ),
        _("How many people rate a task, and how their ratings become a label. A change applies to every task."),
    ),
    Group(
        "pace",
        _("Handing out tasks"),
        (
            Setting("paused", Role.ANNOTATOR),
            Setting("quota", Role.REVIEWER),
            Setting("lease_minutes", Role.ANNOTATOR),
            Setting("tasks_ahead", Role.ANNOTATOR),
        ),
    ),
    Group(
        "gold",
        _("Qualification and gold tasks"),
        (
            Setting("qualification_required", Role.ANNOTATOR),
            *_of("qualification_threshold", "qualification_tries", "gold_every", "gold_window", "gold_threshold"),
        ),
        _("Gold tasks have an expert's rating. They are imported like other tasks."),
    ),
    Group(
        "retraining",
        _("Retraining"),
        (
            *_of("retrain_after_labels", "retrain_after_hours", "retrain_cooldown_minutes", "promote_automatically"),
            Setting("review_unlikely_percent", Role.REVIEWER),
            *_of("learn_evidence", "validation_share"),
        ),
        _("When a reward model is trained on the labels, and what happens to it afterwards."),
    ),
)
SETTINGS = tuple(setting for group in GROUPS for setting in group.settings)
TRAINER = "training_config"
"""The one setting without a field of its own: an object that the trainer reads."""
NAMES = tuple(setting.name for setting in SETTINGS)
RECOUNTING = frozenset(setting.name for setting in SETTINGS if setting.recounts)
OF_SEGMENTS = tuple(setting.name for setting in SETTINGS if setting.of_segments)


_RISING = (Role.ANNOTATOR, Role.REVIEWER, Role.MANAGER)
SEEN_BY: Mapping[Role, tuple[str, ...]] = {
    role: tuple(one.name for one in SETTINGS if one.seen_by in _RISING[: _RISING.index(role) + 1]) for role in _RISING
}
"""The names of the settings that members of each role see; TRAINER is the managers' alone."""


# The trainer ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SettingText:
    """The label of a setting of the trainer, and a sentence on what it does: in English, as REST shows them."""

    label: str
    help: str


COMMON: Mapping[str, SettingText] = MappingProxyType(
    {
        "backbone": SettingText(
            gettext_noop("Language model"),
            gettext_noop("The language model that reads the responses. The operator decides which ones are offered."),
        ),
        "stages": SettingText(
            gettext_noop("What it learns from"),
            gettext_noop("The kinds of answers that it learns from, one after the other."),
        ),
        "epochs": SettingText(
            gettext_noop("Epochs"),
            gettext_noop("How often each stage goes through the training prompts. 0 fine-tunes nothing."),
        ),
        "learning_rate": SettingText(
            gettext_noop("Learning rate"), gettext_noop("How far one step changes the weights of the language model.")
        ),
        "max_length": SettingText(
            gettext_noop("Longest text"),
            gettext_noop(
                "The most tokens of a prompt with its response. What is longer loses the beginning of its prompt."
            ),
        ),
        "lora_rank": SettingText(
            gettext_noop("Rank of LoRA"),
            gettext_noop("Trains small added matrices of this rank instead of every weight. 0 trains every weight."),
        ),
        "max_hours": SettingText(
            gettext_noop("Time limit per run (hours)"),
            gettext_noop("The run is ended after so many hours. 0 means as many as the operator allows."),
        ),
    }
)
"""What people change first of the trainer's settings; all of them are in `rewards.runs.setting_texts`."""
STAGES: Mapping[str, Any] = MappingProxyType(
    {
        "regression": _("Ratings"),
        "regression,scaled": _("Ratings, then preferences by their strength"),
        "regression,bradley_terry": _("Ratings, then preferences"),
        "scaled": _("Preferences by their strength"),
        "bradley_terry": _("Preferences"),
        "margin": _("Preferences, with their strength as a margin"),
        "joint": _("Ratings and preferences together"),
    }
)
"""The orders of stages that are offered; a project's own is offered as well."""
