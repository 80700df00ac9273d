"""Checks the settings of a policy run, the same way for every door, and turns them into config.json of the alignment.

A base policy is chosen by its name: only the operator says where its files are (POLICY_BASES).
"""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from rewards.learning.aligning.config import AlignConfig, setting_hash
from rewards.learning.config import BadConfig, parse_config
from rewards.policies.bases import bases
from rewards.policies.setting_texts import SETTINGS
from rewards.run_settings import UnusableConfig, in_readers_language

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
    """Returns the directory or the Hub id of a base policy; raises UnusableConfig for one that is no longer listed."""
    _require_known(base)
    return bases()[base]
