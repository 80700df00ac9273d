"""Checks the settings of a run, the same way for every door, and turns them into the trainer's config.json.

A backbone is chosen by its name: only the operator says where its files are (REWARD_BACKBONES).
"""

from typing import Any

from django.conf import settings
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from annotator.infrastructure.refusals import Refusal
from annotator.managing.rubrics import weights_of
from annotator.managing.settings_check import unknown_keys
from annotator.models import Project
from rewards.learning.config import PATH_SETTINGS, BadConfig, TrainConfig, parse_config


class UnusableConfig(Refusal):
    """The trainer would refuse these settings, or the operator does not allow them; `setting` names one of them."""

    status = 400
    code = "bad_config"

    def __init__(self, text: str, *, setting: str = "") -> None:
        super().__init__(text)
        self.setting = setting


def in_readers_language(bad: BadConfig) -> str:
    """Returns what the learning core, which knows of no languages, says against a setting."""
    return _(bad.fault) % {
        name: value
        if isinstance(value, str)
        else str(number_format(int(value) if value == int(value) else value, force_grouping=True))
        for name, value in bad.params.items()
    }


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
    if not isinstance(config, dict) or any(place in config for place in PATH_SETTINGS):
        text = _("The trainer's settings are an object of names and values; %(one)s and %(other)s are not among them.")
        raise UnusableConfig(text % dict(zip(("one", "other"), PATH_SETTINGS, strict=True)))
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
        raise UnusableConfig(text % {"reason": in_readers_language(bad)}, setting=bad.setting) from bad
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
