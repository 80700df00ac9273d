"""Checks the settings of a policy run, the same way for every door, and turns them into config.json of the alignment.

A base policy is chosen by its name: only the operator says where its files are (POLICY_BASES, or a folder of the
artifacts, which is read each time, so that a model which somebody puts there can be tried without a restart). The texts
stand in English here. Pages translate them, REST does not.
"""

import re
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotator.infrastructure.storage import store
from annotator.managing.setting_table import SettingText
from rewards.learning.aligning.align_config import AlignConfig, setting_hash
from rewards.learning.config import BadConfig, parse_config
from rewards.runs.run_settings import UnusableConfig, in_readers_language
from rewards.runs.setting_texts import SETTINGS as OF_TRAINING

FOLDER = "policy-bases"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def folder() -> Path:
    return Path(settings.ARTIFACTS) / FOLDER


def bases() -> dict[str, str]:
    """Returns the directory or Hub id of each base by its name; a name in POLICY_BASES goes before a folder's."""
    there = [path for path in store.places_in(FOLDER) if _NAME.fullmatch(path.name)]
    found = {path.name: str(path) for path in there if store.has(path / "config.json")}
    return {**found, **settings.POLICY_BASES}


SETTINGS: Mapping[str, SettingText] = types.MappingProxyType(
    {
        "policy": SettingText(
            gettext_noop("Base policy"),
            gettext_noop("The language model to start from. The operator decides which ones are offered."),
        ),
        "method": SettingText(
            gettext_noop("Method"),
            gettext_noop(
                "What it learns from: better responses, levels of attributes, two responses, or their scored segments."
            ),
        ),
        "beta": SettingText(
            gettext_noop("Beta"),
            gettext_noop("How strongly the policy is held to its base. Smaller values let it move further away."),
        ),
        "epochs": SettingText(gettext_noop("Epochs"), gettext_noop("How often it goes through the training prompts.")),
        "learning_rate": SettingText(
            gettext_noop("Learning rate"), gettext_noop("How far one step changes the weights of the language model.")
        ),
        "rejected_weight": SettingText(
            gettext_noop("Weight of rejected segments"),
            gettext_noop(
                "Inverted: the worst segments of a rejected response count most. Identity: the best ones, as the paper "
                "has it."
            ),
        ),
        "aspect_weights": SettingText(
            gettext_noop("Weights of the aspects"),
            gettext_noop("How much each aspect of a segment counts. Without any, all count the same."),
        ),
        "requested": SettingText(
            gettext_noop("Requested levels"),
            gettext_noop("SteerLM: the levels that the policy is asked for. Others are the highest of their scale."),
        ),
        "seed": SettingText(
            gettext_noop("Seed"),
            gettext_noop("The number that chance starts from. On a CPU the same seed and rows give the same policy."),
        ),
        "max_steps": SettingText(
            gettext_noop("Most steps"), gettext_noop("The most steps. 0 takes as many as the epochs hold.")
        ),
        "batch_size": SettingText(
            gettext_noop("Rows of a step"), gettext_noop("How many comparisons one step learns from.")
        ),
        "held_out_share": SettingText(
            gettext_noop("Measured part"),
            gettext_noop("The share of the training prompts that only measures the loss. It is not learnt."),
        ),
        "sample_tokens": SettingText(
            gettext_noop("Longest answer"),
            gettext_noop("The most tokens of an answer by which the policy is judged."),
        ),
        **{
            name: OF_TRAINING[name]
            for name in (
                "micro_tokens",
                "max_length",
                "weight_decay",
                "warmup_steps",
                "schedule",
                "max_grad_norm",
                "lora_rank",
                "activation_checkpointing",
                "checkpoint_steps",
                "device",
                "precision",
                "threads",
                "processes",
            )
        },
    }
)
"""Every setting that a run may be asked for; those that people change first stand first."""


ROWS = "rows/train.jsonl"
MOST_LEVELS = 7
"""So that levels to request pass here; the snapshot's own number is known when the run has it."""


def check_config(config: Any) -> AlignConfig:
    """Returns the settings as the alignment reads them.

    Raises:
        UnusableConfig: a setting is unknown, of the wrong type or beyond its bound.
    """
    if not isinstance(config, dict) or not all(isinstance(name, str) for name in config):
        raise UnusableConfig(_("The settings are an object of names and values."))
    unknown = sorted(set(config) - set(SETTINGS))
    if unknown:
        names = {"names": ", ".join(unknown)[:200], "known": ", ".join(SETTINGS)}
        raise UnusableConfig(_("There is no setting %(names)s. Those that there are: %(known)s.") % names)
    _require_known(config.get("policy"))
    try:
        return parse_config(AlignConfig, {"data": ROWS, "levels": MOST_LEVELS, **config})
    except BadConfig as bad:
        text = _("The alignment would refuse these settings: %(reason)s.")
        raise UnusableConfig(text % {"reason": in_readers_language(bad)}, setting=bad.setting) from bad


def _require_known(name: Any) -> None:
    # A free path or Hub id would let a project's manager read the machine's files, or have it download anything.
    known = bases()
    if isinstance(name, str) and name in known:
        return
    if not known:
        text = _(
            "The operator has given no base policy, so none can be aligned. The setting is POLICY_BASES; models in the "
            "folder artifacts/policy-bases are offered as well."
        )
        raise UnusableConfig(text, setting="policy")
    text = _(
        "policy must be one of these names: %(names)s. Only the operator can list directories and Hub ids, in "
        "POLICY_BASES."
    )
    raise UnusableConfig(text % {"names": ", ".join(known)}, setting="policy")


def identity(config: AlignConfig) -> str:
    """Returns a hash of every setting that shapes the policy, the name of its base included."""
    return setting_hash(config, base=config.policy)


def for_aligner(config: Mapping[str, Any], *, levels: int, requested: Mapping[str, int]) -> dict[str, Any]:
    """Returns the content of the alignment's config.json, with the place of the base policy on this machine.

    levels: those of the longest scale in the rows; requested: what a policy is asked for whose settings do not say.

    Raises:
        UnusableConfig: the settings are from before they were bounded, or the operator's list has changed since.
    """
    checked = check_config(dict(config))
    own = {"requested": {**requested, **checked.requested}} if requested else {}
    # The run has the policy answer held-out prompts itself, once it is there.
    return {**config, **own, "policy": source_of(checked.policy), "data": ROWS, "levels": levels, "samples": 0}


def source_of(base: str) -> str:
    """Returns the directory or the Hub id of a base policy, whose files are here then.

    Raises:
        UnusableConfig: it is no longer listed.
        StoreAway: it cannot be brought.
    """
    _require_known(base)
    source = bases()[base]
    return str(store.bring(folder() / base)) if source == str(folder() / base) else source
