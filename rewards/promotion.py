"""Whether a candidate takes the champion's place: a pure rule over errors on the same held-out prompts."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from annotator import audit
from annotator.models import Project
from rewards.learning.bootstrap import Gain, paired_bootstrap
from rewards.models import RewardModel

FEWEST_PROMPTS = 5
"""Held-out prompts below which no model is promoted: chance would decide."""
GUARD_TOLERANCE = 0.05
"""How far the RMSE of any one attribute, on the scale of 0 to 4, may rise in a promotion."""


@dataclass(frozen=True)
class HeldOut:
    """A model's errors on the held-out prompts: of each prompt the summed squared error and the labels it sums over."""

    squared_errors: Mapping[str, float]
    labels: Mapping[str, int]
    rmse: Mapping[str, float]


@dataclass(frozen=True)
class Verdict:
    """The decision and its evidence. `gain` is the fall in mean squared error, with its 95 % interval."""

    promote: bool
    reason: str
    against: str
    gain: float
    low: float
    high: float
    prompts: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def decide(candidate: HeldOut, champion: HeldOut | None, mean: HeldOut, *, seed: int) -> Verdict:
    """Promotes on evidence: the lower bound of the gain lies above 0 and no attribute gets clearly worse.

    The first model of a project has no champion to beat; it has to do better than predicting the mean.
    """
    against, rival = ("the champion", champion) if champion else ("predicting the mean", mean)
    prompts = sorted(candidate.squared_errors)
    gain = paired_bootstrap(
        [rival.squared_errors[prompt] for prompt in prompts],
        [candidate.squared_errors[prompt] for prompt in prompts],
        [candidate.labels[prompt] for prompt in prompts],
        seed=seed,
    )
    promote, reason = _ruled(gain, candidate, champion)
    return Verdict(promote, reason, against, gain.mean, gain.low, gain.high, len(prompts))


def _ruled(gain: Gain, candidate: HeldOut, champion: HeldOut | None) -> tuple[bool, str]:
    if gain.prompts < FEWEST_PROMPTS:
        return False, f"{gain.prompts} held-out prompts are too few to judge by: at least {FEWEST_PROMPTS} are needed."
    if champion is None:
        return (
            (True, "The first model, and better than predicting the mean.")
            if gain.mean > 0
            else (
                False,
                "It does no better than predicting the mean.",
            )
        )
    worse = [key for key, value in candidate.rmse.items() if value > champion.rmse.get(key, value) + GUARD_TOLERANCE]
    if gain.low <= 0:
        return False, "No evidence that it is better: the interval of the gain reaches 0 or below."
    if worse:
        return False, f"Better on the whole, but clearly worse at {', '.join(worse)}."
    return True, "Better on the held-out prompts, and no attribute is clearly worse."


def held_out(rows: Sequence[Mapping[str, Any]], predicted: Mapping[str, Mapping[str, float]]) -> HeldOut:
    """Errors of predictions by response id, on a snapshot's validation rows; labels that are missing do not count."""
    errors: dict[str, float] = {}
    labels: dict[str, int] = {}
    by_attribute: dict[str, list[float]] = {}
    for row in rows:
        for response in row["responses"]:
            for key, label in response["scores"].items():
                square = (predicted[response["id"]][key] - label) ** 2
                errors[row["prompt_hash"]] = errors.get(row["prompt_hash"], 0.0) + square
                labels[row["prompt_hash"]] = labels.get(row["prompt_hash"], 0) + 1
                by_attribute.setdefault(key, []).append(square)
    rmse = {key: (sum(squares) / len(squares)) ** 0.5 for key, squares in by_attribute.items()}
    return HeldOut(errors, labels, rmse)


@transaction.atomic
def promote(model: RewardModel, *, now: datetime) -> RewardModel:
    """Makes the model its project's champion. Promoting an earlier one is the rollback."""
    Project.objects.select_for_update().get(pk=model.project_id)
    others = RewardModel.objects.filter(project=model.project_id, is_champion=True).exclude(pk=model.pk)
    replaced = others.values_list("version", flat=True).first()
    others.update(is_champion=False)
    model.is_champion = True
    model.promoted_at = now
    model.save(update_fields=["is_champion", "promoted_at"])
    audit.record("model.promoted", f"model version {model.version}", project=model.project, replaced=replaced)
    return model
