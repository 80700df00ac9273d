"""Whether a candidate takes the champion's place: a pure rule over errors on the same held-out prompts."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from annotator import audit
from annotator.models import Project
from annotator.refusals import Refusal
from rewards.learning.bootstrap import Gain, paired_bootstrap
from rewards.models import RewardModel, RunState, TrainingRun

FEWEST_PROMPTS = 5
"""Held-out prompts below which no model is promoted: chance would decide."""
GUARD_TOLERANCE = 0.05
"""How far the RMSE of any one attribute, on the scale of 0 to 4, may rise in a promotion."""
PAIRS_TOLERANCE = 0.03
"""How far the share of pairs put in the right order may fall; one pair of a few is always allowed."""


class FilesErased(Refusal):
    """The model's files are gone, as it had learnt from texts that were to be forgotten."""

    code = "files_erased"


@dataclass(frozen=True)
class HeldOut:
    """A model's errors on the held-out prompts: of each prompt the summed squared error and the labels it sums over.

    `right` of `pairs` of responses stand in the order that people gave them; `constant` attributes get one score
    everywhere.
    """

    squared_errors: Mapping[str, float]
    labels: Mapping[str, int]
    rmse: Mapping[str, float]
    pairs: int = 0
    right: float = 0
    constant: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Verdict:
    """The decision and its evidence. `gain` is the fall in mean squared error, with its 95 % interval.

    `detectable` is the gain that these prompts would have shown four times in five.
    """

    promote: bool
    reason: str
    against: str
    gain: float
    low: float
    high: float
    prompts: int
    detectable: float = 0.0

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
    return Verdict(promote, reason, against, gain.mean, gain.low, gain.high, len(prompts), gain.detectable())


def _ruled(gain: Gain, candidate: HeldOut, champion: HeldOut | None) -> tuple[bool, str]:
    if gain.prompts < FEWEST_PROMPTS:
        return False, f"{gain.prompts} held-out prompts are too few to judge by: at least {FEWEST_PROMPTS} are needed."
    if candidate.rmse and candidate.constant >= set(candidate.rmse):
        return False, "It gives every response the same scores."
    if champion is None:
        if gain.mean > 0:
            return True, "The first model, and better than predicting the mean."
        return False, "It does no better than predicting the mean."
    if gain.low <= 0:
        return False, _no_evidence(gain)
    if held_back := _held_back(candidate, champion):
        return False, f"Better on the whole, but {held_back}."
    return True, "Better on the held-out prompts, and clearly worse at nothing."


def _no_evidence(gain: Gain) -> str:
    return (
        f"No evidence that it is better: the interval of the gain reaches {'0 or ' if gain.high > 0 else ''}below. "
        f"These {gain.prompts} prompts would show a gain of about {gain.detectable():.3f} or more."
    )


def _held_back(candidate: HeldOut, champion: HeldOut) -> str:
    """What a better model must not lose on the way; empty if it does not."""
    worse = [key for key, value in candidate.rmse.items() if value > champion.rmse.get(key, value) + GUARD_TOLERANCE]
    if worse:
        return f"clearly worse at {', '.join(worse)}"
    silent = sorted(candidate.constant - champion.constant)
    if silent:
        return f"it gives every response the same {', '.join(silent)}"
    if champion.right - candidate.right > max(1.0, PAIRS_TOLERANCE * candidate.pairs):
        before, after = (f"{each.right / candidate.pairs:.0%}" for each in (champion, candidate))
        return f"it puts fewer pairs in the right order: {after} instead of {before}"
    return ""


def held_out(
    rows: Sequence[Mapping[str, Any]],
    predicted: Mapping[str, Mapping[str, float]],
    *,
    metrics: Mapping[str, Any] = {},
) -> HeldOut:
    """Errors of predictions by response id, on a snapshot's validation rows; labels that are missing do not count.

    metrics: what `rewards.learning.evaluate` measured of the same predictions, for the guards.
    """
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
    pairwise = metrics.get("pairwise", {})
    pairs = pairwise.get("pairs") or 0
    right = pairs * (pairwise.get("accuracy") or 0.0)
    return HeldOut(errors, labels, rmse, pairs, right, frozenset(metrics.get("constant", ())))


@transaction.atomic
def promote(model: RewardModel, *, now: datetime) -> RewardModel:
    """Makes the model its project's champion, and is the yes to one that waits. An earlier one is the rollback.

    Raises:
        FilesErased: there is nothing left to score with.
    """
    Project.objects.select_for_update().get(pk=model.project_id)
    if model.is_erased():
        raise FilesErased(f"{model} has been erased with the snapshot that it learnt from: promote another one.")
    others = RewardModel.objects.filter(project=model.project_id, is_champion=True).exclude(pk=model.pk)
    replaced = others.values_list("version", flat=True).first()
    others.update(is_champion=False)
    model.is_champion = True
    model.promoted_at = now
    model.save(update_fields=["is_champion", "promoted_at"])
    TrainingRun.objects.waiting().filter(pk=model.run_id).update(state=RunState.PROMOTED, finished_at=now)
    audit.record("model.promoted", f"model version {model.version}", project=model.project, replaced=replaced)
    return model
