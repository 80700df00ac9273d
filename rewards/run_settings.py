"""Checks the settings of a run, the same way for every door, and turns them into the trainer's config.json.

A backbone is chosen by its name: only the operator says where its files are (REWARD_BACKBONES).
"""

from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotator.models import Project
from annotator.projects.rubrics import weights_of
from annotator.projects.settings_check import unknown_keys
from annotator.refusals import Refusal
from annotator.web.stored_sentences import in_readers_language
from rewards.learning.config import PLACES, BadConfig, TrainConfig, parse_config


class UnusableConfig(Refusal):
    """The trainer would refuse these settings, or the operator does not allow them; `setting` names one of them."""

    status = 400
    code = "bad_config"

    def __init__(self, text: str, *, setting: str = "") -> None:
        super().__init__(text)
        self.setting = setting


FAULTS = (
    gettext_noop("%(name)s must be greater than 0, not %(given)s"),
    gettext_noop("%(name)s must not be negative, not %(given)s"),
    gettext_noop("%(name)s must be at most %(most)s, not %(given)s"),
    gettext_noop("%(name)s must be one of %(known)s, not %(given)s"),
    gettext_noop("%(name)s must lie between 0 and 1, not %(given)s"),
    gettext_noop("%(name)s must name one or more of %(known)s"),
    gettext_noop("%(name)s must be a list of positive numbers"),
    gettext_noop("%(name)s cannot be %(given)s"),
    gettext_noop("unknown keys in the configuration: %(names)s"),
    gettext_noop("the number of %(name)s"),
    gettext_noop("each of the %(name)s"),
    gettext_noop("the size of %(attribute)s in %(name)s"),
)
"""What the learning core, which knows of no languages, says against a setting (rewards/learning/config.py)."""


def settled(project: Project, asked: dict[str, Any]) -> dict[str, Any]:
    """Returns the requested settings over the project's over those of its rubric and of the installation."""
    weights = weights_of(project.attributes_for())
    usual = {"backbone": settings.REWARD_BACKBONE} | ({"attribute_weights": weights} if weights else {})
    return {**usual, **project.training_config, **asked}


def check_config(config: Any) -> TrainConfig:
    """Returns the settings as the trainer reads them.

    Raises:
        UnusableConfig: a setting is unknown, of the wrong type or beyond its bound.
    """
    if not isinstance(config, dict) or any(place in config for place in PLACES):
        text = _("The trainer's settings are an object of names and values; %(one)s and %(other)s are not among them.")
        raise UnusableConfig(text % dict(zip(("one", "other"), PLACES, strict=True)))
    # A free path or Hub id would let a project's manager read the machine's files, or have it download anything.
    name = config.get("backbone", settings.REWARD_BACKBONE)
    if not isinstance(name, str) or name not in settings.REWARD_BACKBONES:
        names = ", ".join(settings.REWARD_BACKBONES)
        text = _(
            "backbone must be one of these names: %(names)s. Only the operator can list directories and Hub ids, in "
            "REWARD_BACKBONES."
        )
        raise UnusableConfig(text % {"names": names}, setting="backbone")
    try:
        parsed = parse_config(TrainConfig, {"snapshot": "-", **config})
    except BadConfig as bad:
        text = _("The trainer would refuse these settings: %(reason)s.")
        # What is wrong with a single setting begins with its name.
        raise UnusableConfig(
            text % {"reason": in_readers_language(str(bad), FAULTS)}, setting=str(bad).split(" ", 1)[0]
        ) from bad
    if parsed.max_hours > settings.RUN_HOURS:
        text = _("max_hours must be at most %(most)s, the operator's RUN_HOURS, not %(given)s.")
        hours = {"most": f"{settings.RUN_HOURS:g}", "given": f"{parsed.max_hours:g}"}
        raise UnusableConfig(text % hours, setting="max_hours")
    return parsed


def require_known_attributes(project: Project, config: dict[str, Any]) -> None:
    """Raises UnusableConfig if `attribute_weights` names what is no attribute of the project's rubric."""
    if unknown := unknown_keys(project, config):
        text = _("attribute_weights names %(names)s, which the rubric does not have.")
        raise UnusableConfig(text % {"names": ", ".join(unknown)}, setting="attribute_weights")


def for_trainer(config: dict[str, Any], *, snapshot: str) -> dict[str, Any]:
    """Returns the content of the trainer's config.json, with the places of files on this machine.

    Raises:
        UnusableConfig: the settings are from before they were bounded, or the operator's list has changed since.
    """
    checked = check_config(config)
    source = settings.REWARD_BACKBONES[checked.backbone]
    return {**config, "backbone": checked.backbone, "backbone_source": source, "snapshot": snapshot}


def hours_allowed(config: dict[str, Any]) -> float:
    """Returns how many hours a run with these settings may work."""
    return min(config.get("max_hours") or settings.RUN_HOURS, settings.RUN_HOURS)
