"""The settings of one alignment, checked before anything slow is imported."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rewards.learning.config import (
    AUTO,
    DEVICES,
    PRECISIONS,
    SCHEDULES,
    UPPER_BOUNDS,
    BadConfig,
    require_bounded,
    require_not_negative,
    require_one_of,
    require_positive,
    require_weights,
)
from rewards.learning.refusals import gettext_noop

SFT, STEERLM, DPO, DPO_1D, DPO_2D = "sft", "steerlm", "dpo", "dpo_1d", "dpo_2d"
METHODS = (SFT, STEERLM, DPO, DPO_1D, DPO_2D)
IMITATING = (SFT, STEERLM)
"""Methods that raise the likelihood of a response, and compare nothing."""
BY_SEGMENT = (DPO_1D, DPO_2D)
INVERTED, IDENTITY = "inverted", "identity"
PATH_SETTINGS = ("policy", "reference", "data", "held_out_data", "reference_folder")
"""Settings that say where files lie. What is in the files counts instead, by its hash."""
MACHINE_SETTINGS = (*PATH_SETTINGS, "device", "threads", "processes", "micro_tokens", "samples", "sample_tokens")
"""Settings that do not change the trained weights, but by rounding."""
ALIGNING_BOUNDS: Mapping[str, float] = types.MappingProxyType(
    {**UPPER_BOUNDS, "beta": 1e6, "levels": 100, "samples": 10_000, "sample_tokens": 2**17}
)


@dataclass(frozen=True)
class AlignConfig:
    """The settings of one alignment.

    `policy` is the directory or the Hub id of any causal language model of transformers, and `data` a JSONL file of
    judged responses. `batch_size` counts rows of `data`. Scores and levels of attributes go from 0 to `levels` - 1.

    Raises:
        BadConfig: a value is out of its range, or does not fit the method.
    """

    method: str
    policy: str
    data: str
    held_out_data: str = ""  # rows that are not trained on; "": some of the prompts of `data`
    held_out_share: float = 0.1  # of the prompts of `data`
    reference: str = ""  # a directory or Hub id; "": the policy before training
    reference_folder: str = ""  # its log-probabilities are kept there; "": in `reference` beside config.json
    aspect_weights: dict[str, float] = field(default_factory=dict)  # scaled to the sum 1; none: all equal
    rejected_weight: str = INVERTED
    levels: int = 5
    requested: dict[str, float] = field(default_factory=dict)  # levels to ask for; none: each attribute's highest
    beta: float = 0.1
    seed: int = 0
    epochs: int = 1
    max_steps: int = 0  # 0: as many as the epochs hold
    batch_size: int = 8
    micro_tokens: int = 0  # what goes through the network at once; 0: a whole step, halved when memory runs out
    max_length: int = 1024
    learning_rate: float = 1e-6
    weight_decay: float = 0.0
    warmup_steps: int = 10
    schedule: str = "constant"
    max_grad_norm: float = 1.0
    lora_rank: int = 0  # 0: every weight is trained
    activation_checkpointing: bool = False
    checkpoint_steps: int = 200
    samples: int = 16  # prompts that the policy answers at the end; 0: none
    sample_tokens: int = 128  # the most of each answer
    device: str = AUTO
    precision: str = AUTO  # of the passes; auto: bf16 on a GPU, else fp32
    threads: int = 0  # 0: torch decides
    processes: int = 0  # 0: one for each GPU, or one

    def __post_init__(self) -> None:
        require_one_of("method", self.method, METHODS)
        require_one_of("rejected_weight", self.rejected_weight, (INVERTED, IDENTITY))
        require_one_of("schedule", self.schedule, SCHEDULES)
        require_one_of("device", self.device, DEVICES)
        require_one_of("precision", self.precision, PRECISIONS)
        require_positive(self, "beta", "learning_rate", "max_grad_norm", "batch_size", "max_length", "checkpoint_steps")
        require_positive(self, "sample_tokens")
        require_not_negative(self, "seed", "epochs", "max_steps", "micro_tokens", "weight_decay", "warmup_steps")
        require_not_negative(self, "lora_rank", "samples", "threads", "processes", "held_out_share")
        require_bounded(self, ALIGNING_BOUNDS)
        if self.levels < 2:
            raise BadConfig("%(name)s must be at least 2, not %(given)s", name="levels", given=self.levels)
        if self.held_out_share >= 1:
            fault = gettext_noop("%(name)s must be less than 1, not %(given)s: 0 trains on every prompt")
            raise BadConfig(fault, name="held_out_share", given=self.held_out_share)
        require_weights("aspect_weights", self.aspect_weights)
        for aspect, weight in self.aspect_weights.items():
            if weight < 0:
                fault = gettext_noop("%(aspect)s in %(name)s must not be negative, not %(given)s")
                raise BadConfig(fault, name="aspect_weights", aspect=aspect, given=weight)
        if self.aspect_weights and not sum(self.aspect_weights.values()):
            fault = gettext_noop("%(name)s must not all be 0: name the aspects that count")
            raise BadConfig(fault, name="aspect_weights")
        _require_requested(self.requested, self.method, self.levels)


def _require_requested(requested: Mapping[str, float], method: str, levels: int) -> None:
    if requested and method != STEERLM:
        fault = gettext_noop("%(name)s is for the method steerlm: %(method)s asks for no levels")
        raise BadConfig(fault, name="requested", method=method)
    for attribute, level in requested.items():
        if level not in range(levels):
            fault = gettext_noop("%(attribute)s in %(name)s must be a whole number from 0 to %(most)s, not %(given)s")
            raise BadConfig(fault, name="requested", attribute=attribute, most=levels - 1, given=level)


def setting_hash(config: AlignConfig, **contents: str) -> str:
    """Returns a hash of every setting that shapes the policy, and of the contents of the files by their hashes."""
    values = {name: value for name, value in dataclasses.asdict(config).items() if name not in MACHINE_SETTINGS}
    return hashlib.sha256(json.dumps([values, contents], sort_keys=True).encode()).hexdigest()


def public_settings(config: AlignConfig) -> dict[str, Any]:
    """Returns the settings with the names of models, but without the places of files."""
    settings = {name: value for name, value in dataclasses.asdict(config).items() if name not in PATH_SETTINGS}
    return {**settings, "policy": _model_name(config.policy), "reference": _model_name(config.reference)}


def _model_name(place: str) -> str:
    """Returns a model's id, or of a directory its last part."""
    return Path(place).name if Path(place).is_absolute() or place.startswith((".", "~")) else place


def file_place(name: str, directory: Path) -> Path:
    """Returns where a file of the configuration is: beside config.json if it is there, else as it is named."""
    beside = directory / name
    return beside if beside.exists() else Path(name)
