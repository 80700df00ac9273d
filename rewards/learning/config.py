"""The settings of a run: frozen dataclasses, read from `config.json` and checked before anything slow is imported."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from rewards.learning.refusals import Refused, gettext_noop

# HelpSteer2 section 3: the weights of the 70B model on RewardBench.
HELPSTEER2_WEIGHTS: Mapping[str, float] = types.MappingProxyType(
    {"helpfulness": 0.65, "correctness": 0.8, "coherence": 0.45, "complexity": 0.55, "verbosity": -0.4}
)
# From 0.01 to 1e8. Under the largest penalty the head is the mean of the labels: pure noise must be able to shrink to
# it, or a model of shuffled labels would be worse than no model.
RIDGE_ALPHAS = tuple(10.0 ** (exponent / 4) for exponent in range(-8, 33))
AUTO, FLOAT32, BFLOAT16 = "auto", "float32", "bfloat16"
DEVICES = (AUTO, "cpu", "cuda")
PRECISIONS = (AUTO, FLOAT32, BFLOAT16)
REGRESSION, JOINT = "regression", "joint"
OBJECTIVES = (REGRESSION, "bradley_terry", "margin", "scaled", JOINT)
SCHEDULES = ("constant", "cosine")
TARGETS = ("mean", "label")
PATH_SETTINGS = ("snapshot", "backbone_source")
"""Settings that say where files lie on this machine. No manifest and no event holds them."""
MACHINE_SETTINGS = (*PATH_SETTINGS, "device", "precision", "threads", "processes", "micro_tokens", "max_hours")
"""Settings that change results by rounding only: where the data lies, what computes it, and for how long."""
OMITTED_IF_DEFAULT = ("segment_weight",)
"""Settings that stored configurations may lack. With their default they are neither written nor hashed."""
UPPER_BOUNDS: Mapping[str, float] = types.MappingProxyType(
    {
        "seed": 2**31 - 1,
        "epochs": 10_000,
        "max_steps": 10_000_000,
        "batch_tokens": 2**22,
        "batch_size": 2**16,
        "micro_tokens": 2**22,
        "max_length": 2**17,
        "layers": 1_000,
        "learning_rate": 10.0,
        "head_learning_rate": 10.0,
        "weight_decay": 10.0,
        "warmup_steps": 1_000_000,
        "max_grad_norm": 1e9,
        "segment_weight": 1_000.0,
        "lora_rank": 1_024,
        "patience": 10_000,
        "checkpoint_steps": 1_000_000,
        "threads": 1_024,
        "processes": 64,
        "cross_fit_minutes": 60.0 * 24 * 365,
        "max_hours": 24.0 * 365,
    }
)
"""The largest value of each number: more than any machine or method can use, and less than what would stop one."""
MOST_STAGES, MOST_ALPHAS, LARGEST_ALPHA, MOST_WEIGHTS, LARGEST_WEIGHT, LONGEST_TEXT = 8, 200, 1e12, 100, 1e6, 1_000
LONGEST_SHOWN = 200
LARGEST_WHOLE = 2**53  # beyond it float64 skips integers


AT_MOST = gettext_noop("%(name)s must be at most %(most)s, not %(given)s")
ONE_OF = gettext_noop("%(name)s must be one of %(known)s, not %(given)s")
NUMBER_AT_MOST = gettext_noop("the number of %(name)s must be at most %(most)s, not %(given)s")
WEIGHT_AT_MOST = gettext_noop("the size of %(attribute)s in %(name)s must be at most %(most)s, not %(given)s")


class BadConfig(Refused):
    """The configuration is absent, is not a JSON object, or holds a value that cannot be used.

    `fault` is a sentence with places for `params`. `setting` is the one that is at fault; empty where it is no single
    one.
    """

    def __init__(self, fault: str, **params: str | float) -> None:
        self.fault, self.params = fault, {name: _shortened(value) for name, value in params.items()}
        self.setting = str(params.get("name", ""))
        written = {name: value if isinstance(value, str) else f"{value:,.16g}" for name, value in self.params.items()}
        # Without params the sentence may hold anything, such as a path with a per cent sign.
        super().__init__(fault % written if params else fault)


def _shortened(value: str | float) -> str | float:
    if not isinstance(value, str) and abs(value) <= LARGEST_WHOLE:
        return value
    # Refusals are stored and shown: a value of megabytes must not come back in one.
    text = str(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


@dataclass(frozen=True)
class TrainConfig:
    """The settings of one training run.

    Lengths are in tokens; `batch_tokens` counts those of one optimizer step, padding included. `stages` follow each
    other, each from the best step of the one before, head included: ["regression", "scaled"] is the best published
    order (HelpSteer2-Preference, arXiv 2410.01257, section 4).

    Raises:
        BadConfig: a value is out of its range.
    """

    snapshot: str
    backbone: str = "minilm"
    backbone_source: str = ""  # its directory or Hub id, where `backbone` is only a name for it
    stages: tuple[str, ...] = (REGRESSION,)
    targets: str = "mean"  # of the kept ratings, or the rounded label
    weight_by_agreement: bool = False
    segment_weight: float = 1.0  # of the segments' loss beside the responses'
    seed: int = 0
    epochs: int = 2  # of each stage
    max_steps: int = 0  # of each stage; 0: as many as the epochs hold
    batch_tokens: int = 4096
    batch_size: int = 0  # tasks (responses, for regression on an encoder) of one optimizer step; 0: by batch_tokens
    micro_tokens: int = 0  # what goes through the network at once; 0: a whole step, halved when memory runs out
    max_length: int = 512
    layers: int = 0  # encoders: so many are read; 0: all or two thirds, from whichever the ridge predicts better
    learning_rate: float = 2e-5
    head_learning_rate: float = 1e-4
    weight_decay: float = 0.01
    warmup_steps: int = 10
    schedule: str = "constant"
    max_grad_norm: float = 1.0
    lora_rank: int = 0  # 0: every weight is trained
    activation_checkpointing: bool = False
    compile: bool = False
    dev_share: float = 0.15
    patience: int = 1
    checkpoint_steps: int = 200
    alphas: tuple[float, ...] = RIDGE_ALPHAS
    attribute_weights: dict[str, float] = field(default_factory=dict)
    device: str = AUTO
    precision: str = AUTO  # of the passes; auto: bf16 where that is quicker and nearly the same
    threads: int = 0  # 0: torch decides
    processes: int = 0  # 0: one for each GPU, or one
    cross_fit_minutes: float = 30.0  # granted for judging a fine-tuned network by folds of the train prompts; 0: not
    fine_tuned_curve: bool = False  # a learning curve of fine-tuning, which costs seven times the fine-tuning
    max_hours: float = 0.0  # whoever started the run ends it after so many; 0: after as many as are allowed there

    def __post_init__(self) -> None:
        require_positive(self, "batch_tokens", "max_length", "learning_rate", "head_learning_rate", "max_grad_norm")
        require_positive(self, "patience", "checkpoint_steps")
        require_not_negative(self, "seed", "epochs", "max_steps", "weight_decay", "warmup_steps", "threads")
        require_not_negative(self, "batch_size", "micro_tokens", "layers", "lora_rank", "processes")
        require_not_negative(self, "cross_fit_minutes", "max_hours")
        require_positive(self, "segment_weight")
        require_bounded(self)
        require_one_of("schedule", self.schedule, SCHEDULES)
        require_one_of("targets", self.targets, TARGETS)
        if not self.stages:
            fault = gettext_noop("%(name)s must name one or more of %(known)s")
            raise BadConfig(fault, name="stages", known=", ".join(OBJECTIVES))
        require_at_most("stages", len(self.stages), MOST_STAGES, fault=NUMBER_AT_MOST)
        for stage in self.stages:
            fault = gettext_noop("each of the %(name)s must be one of %(known)s, not %(given)s")
            require_one_of("stages", stage, OBJECTIVES, fault=fault)
        if not 0 < self.dev_share < 1:
            fault = gettext_noop("%(name)s must lie between 0 and 1, not %(given)s")
            raise BadConfig(fault, name="dev_share", given=self.dev_share)
        if not self.alphas or min(self.alphas) <= 0:
            raise BadConfig(gettext_noop("%(name)s must be a list of positive numbers"), name="alphas")
        require_at_most("alphas", len(self.alphas), MOST_ALPHAS, fault=NUMBER_AT_MOST)
        fault = gettext_noop("each of the %(name)s must be at most %(most)s, not %(given)s")
        require_at_most("alphas", max(self.alphas), LARGEST_ALPHA, fault=fault)
        require_weights("attribute_weights", self.attribute_weights)
        require_one_of("device", self.device, DEVICES)
        require_one_of("precision", self.precision, PRECISIONS)


@dataclass(frozen=True)
class EvaluateConfig:
    """The settings of one evaluation of a stored model.

    `data` is a file in the snapshot's or a benchmark's format, or `hub:NAME@SPLIT`. `train` is the file of the rows
    that the model was trained on, so that it is not judged by them; empty where it is unknown. `processes` is what it
    is for training.

    Raises:
        BadConfig: a value is out of its range.
    """

    model: str
    data: str
    train: str = ""
    batch_tokens: int = 8192
    device: str = AUTO
    precision: str = AUTO
    threads: int = 0
    processes: int = 1

    def __post_init__(self) -> None:
        require_positive(self, "batch_tokens")
        require_not_negative(self, "threads", "processes")
        require_bounded(self)
        require_one_of("device", self.device, DEVICES)
        require_one_of("precision", self.precision, PRECISIONS)


@dataclass(frozen=True)
class ScoreConfig:
    """The settings of one scoring of `items.jsonl` by a stored model; `processes` is what it is for training.

    Raises:
        BadConfig: a value is out of its range.
    """

    model: str
    batch_tokens: int = 8192
    device: str = AUTO
    precision: str = AUTO
    threads: int = 0
    processes: int = 1

    def __post_init__(self) -> None:
        require_positive(self, "batch_tokens")
        require_not_negative(self, "threads", "processes")
        require_bounded(self)
        require_one_of("device", self.device, DEVICES)
        require_one_of("precision", self.precision, PRECISIONS)


if typing.TYPE_CHECKING:
    from _typeshed import DataclassInstance

Config = TypeVar("Config", bound="DataclassInstance")
"""A frozen dataclass of settings, which checks its values when it is made."""


def read_config(kind: type[Config], path: Path) -> Config:
    """Returns the configuration in the JSON file `path`.

    Raises:
        BadConfig: the file is absent or not a JSON object, or `parse_config` refuses it.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadConfig(f"there is no {path}") from None
    except ValueError as error:
        raise BadConfig(f"{path} is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise BadConfig(f"{path} must hold a JSON object")
    return parse_config(kind, values)


def parse_config(kind: type[Config], values: Mapping[str, Any]) -> Config:
    """Returns the configuration with these values and defaults for the others.

    Raises:
        BadConfig: a key is unknown or missing, or a value has the wrong type or is out of its range.
    """
    hints = typing.get_type_hints(kind)
    unknown = sorted(set(values) - set(hints))
    if unknown:
        raise BadConfig(gettext_noop("unknown keys in the configuration: %(names)s"), names=", ".join(unknown))
    required = [f.name for f in dataclasses.fields(kind) if f.default is f.default_factory is dataclasses.MISSING]
    missing = [name for name in required if name not in values]
    if missing:
        raise BadConfig(gettext_noop("the configuration lacks %(names)s"), names=", ".join(missing))
    return kind(**{key: _typed(key, value, hints[key]) for key, value in values.items()})


def config_hash(config: TrainConfig) -> str:
    """Returns a hash of every setting that shapes the result."""
    values = {k: v for k, v in _settings(config).items() if k not in MACHINE_SETTINGS}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def without_places(config: TrainConfig) -> dict[str, Any]:
    """Returns the settings without the places of files, as other people may read them."""
    settings = {name: value for name, value in _settings(config).items() if name not in PATH_SETTINGS}
    return {**settings, "backbone": backbone_name(config)}


def _settings(config: TrainConfig) -> dict[str, Any]:
    usual = {field.name: field.default for field in dataclasses.fields(config) if field.name in OMITTED_IF_DEFAULT}
    return {name: value for name, value in dataclasses.asdict(config).items() if usual.get(name, ...) != value}


def backbone_name(config: TrainConfig) -> str:
    """Returns the backbone's id, or of a directory its last part."""
    backbone = config.backbone
    return Path(backbone).name if Path(backbone).is_absolute() or backbone.startswith((".", "~")) else backbone


def reward_weights(attributes: Sequence[str], weights: Mapping[str, float]) -> dict[str, float]:
    """Returns the attributes' weights in the scalar reward.

    They are as given, else HelpSteer2's (arXiv 2406.08673, section 3) for its five attributes, else equal and positive.

    Raises:
        BadConfig: the given weights do not name exactly the attributes.
    """
    if weights:
        if set(weights) != set(attributes):
            raise BadConfig(f"attribute_weights must name exactly {', '.join(attributes)}")
        return {name: weights[name] for name in attributes}
    if set(attributes) == set(HELPSTEER2_WEIGHTS):
        return {name: HELPSTEER2_WEIGHTS[name] for name in attributes}
    return {name: 1 / len(attributes) for name in attributes}


def _typed(key: str, value: Any, hint: Any) -> Any:
    """Returns the value as the type that the setting is declared with; raises BadConfig if it is of another."""
    if hint is str and isinstance(value, str) and value:
        fault = gettext_noop("the length of %(name)s must be at most %(most)s, not %(given)s")
        require_at_most(key, len(value), LONGEST_TEXT, fault=fault)
        return value
    if hint is bool and isinstance(value, bool):
        return value
    # In Python True is an int, but "epochs": true is a mistake.
    if hint is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if hint == tuple[str, ...] and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    if hint is float and _is_number(value):
        return float(value)
    if hint == tuple[float, ...] and isinstance(value, list) and all(map(_is_number, value)):
        return tuple(map(float, value))
    if hint == dict[str, float] and isinstance(value, dict) and all(map(_is_number, value.values())):
        return {name: float(weight) for name, weight in value.items()}
    raise BadConfig(gettext_noop("%(name)s cannot be %(given)s"), name=key, given=json.dumps(value))


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    # json reads NaN, which passes every bound, and Infinity; float() of a very large integer raises OverflowError.
    return math.isfinite(value) if isinstance(value, float) else abs(value) <= LARGEST_WHOLE


def require_positive(config: object, *names: str) -> None:
    """Raises BadConfig unless each of these settings is greater than 0."""
    for name in names:
        if vars(config)[name] <= 0:
            fault = gettext_noop("%(name)s must be greater than 0, not %(given)s")
            raise BadConfig(fault, name=name, given=vars(config)[name])


def require_not_negative(config: object, *names: str) -> None:
    """Raises BadConfig if one of these settings is below 0."""
    for name in names:
        if vars(config)[name] < 0:
            fault = gettext_noop("%(name)s must not be negative, not %(given)s")
            raise BadConfig(fault, name=name, given=vars(config)[name])


def require_bounded(config: object, most: Mapping[str, float] = UPPER_BOUNDS) -> None:
    """Raises BadConfig if a setting is above its bound in `most`, where it has one."""
    for name, value in vars(config).items():
        if name in most:
            require_at_most(name, value, most[name])


def require_at_most(name: str, value: float, bound: float, *, fault: str = AT_MOST) -> None:
    """Raises BadConfig if the value of a setting, or what the `fault` says of it, is above the bound."""
    if value > bound:
        raise BadConfig(fault, name=name, most=bound, given=value)


def require_one_of(name: str, value: str, known: Sequence[str], *, fault: str = ONE_OF) -> None:
    """Raises BadConfig, which names all known values, if the value is none of them."""
    if value not in known:
        raise BadConfig(fault, name=name, known=", ".join(known), given=value)


def require_weights(name: str, weights: Mapping[str, float]) -> None:
    """Raises BadConfig if there are too many weights, or one is too large."""
    require_at_most(name, len(weights), MOST_WEIGHTS, fault=NUMBER_AT_MOST)
    for attribute, weight in weights.items():
        if abs(weight) > LARGEST_WEIGHT:
            raise BadConfig(WEIGHT_AT_MOST, name=name, attribute=attribute, most=LARGEST_WEIGHT, given=abs(weight))
