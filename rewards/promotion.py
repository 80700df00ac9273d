"""Whether a candidate takes the champion's place: a pure rule over errors on the same held-out prompts."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction

from annotator import audit
from annotator.models import Project
from annotator.refusals import Refusal
from rewards.learning.data import Task, better
from rewards.learning.paired_bootstrap import Gain, paired_bootstrap
from rewards.models import RewardModel, RunState, TrainingRun

FEWEST_PROMPTS = 5
"""Held-out prompts below which no model is promoted: chance would decide."""
GUARD_TOLERANCE = 0.05
"""How far the RMSE of any one attribute, on the scale of 0 to 4, may rise in a promotion."""
SQUARES, PAIRS = "mean squared error", "share of pairs in the wrong order"
ON_SCALE = ("regression", "joint")
"""Last stages of training after which scores are on the scale of the labels; after others only their order counts."""
SAME = 1e-9
"""A gain that is only a rounding error."""
SMALLEST = 0.001
"""The smallest gain that is named: below it three digits would say 0."""
PAIRS_TOLERANCE = 0.03
"""How far the share of pairs put in the right order may fall; one pair of a few is always allowed."""


class FilesErased(Refusal):
    """The model's files are gone, as it had learnt from texts that were to be forgotten."""

    code = "files_erased"


@dataclass(frozen=True)
class HeldOut:
    """A model's errors on the held-out prompts: of each prompt the summed squared error and the labels it sums over.

    Of each prompt with responses that people tell apart, `wrong` of so many `compared` pairs stand in the wrong order;
    a tie is half of one. Over all, `right` of `pairs` are in the right order, ties being wrong. `constant` attributes
    get one score everywhere. Unless it is `on_scale`, only the order of a model's scores means something.
    """

    squared_errors: Mapping[str, float]
    labels: Mapping[str, int]
    rmse: Mapping[str, float]
    pairs: int = 0
    right: float = 0
    constant: frozenset[str] = frozenset()
    wrong: Mapping[str, float] = field(default_factory=dict)
    compared: Mapping[str, int] = field(default_factory=dict)
    on_scale: bool = True


@dataclass(frozen=True)
class Verdict:
    """The decision and its evidence. `gain` is the fall in what is measured, with its 95 % interval.

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
    measure: str = SQUARES

    def as_json(self) -> dict[str, Any]:
        """PostgreSQL's JSON knows no number that is none."""
        values = asdict(self)
        return {
            name: None if isinstance(value, float) and math.isnan(value) else value for name, value in values.items()
        }


def decide(candidate: HeldOut, champion: HeldOut | None, mean: HeldOut, *, seed: int) -> Verdict:
    """Promotes on evidence: the lower bound of the gain lies above 0 and no attribute gets clearly worse.

    The first model of a project has no champion to beat; it has to do better than predicting the mean.
    """
    against, rival = ("the champion", champion) if champion else ("predicting the mean", mean)
    measure = SQUARES if candidate.on_scale and rival.on_scale and candidate.labels else PAIRS
    gain = _gain(candidate, rival, measure=measure, seed=seed)
    promote, reason = _ruled(gain, candidate, champion, measure=measure)
    detectable = gain.detectable()
    return Verdict(promote, reason, against, gain.mean, gain.low, gain.high, gain.prompts, detectable, measure)


def _gain(candidate: HeldOut, rival: HeldOut, *, measure: str, seed: int) -> Gain:
    by_pairs = measure == PAIRS
    counts = candidate.compared if by_pairs else candidate.labels
    theirs, ours = ((each.wrong if by_pairs else each.squared_errors) for each in (rival, candidate))
    prompts = sorted(counts)
    if not prompts:
        return Gain(0.0, 0.0, 0.0, 0)
    return paired_bootstrap(
        [theirs[prompt] for prompt in prompts],
        [ours[prompt] for prompt in prompts],
        [counts[prompt] for prompt in prompts],
        seed=seed,
    )


def _ruled(gain: Gain, candidate: HeldOut, champion: HeldOut | None, *, measure: str) -> tuple[bool, str]:
    if gain.prompts < FEWEST_PROMPTS:
        return (
            False,
            f"{gain.prompts} held-out prompts are too few for a judgement. At least {FEWEST_PROMPTS} are needed.",
        )
    if not math.isfinite(gain.mean):
        return False, "Some of the scores are not numbers."
    if candidate.rmse and candidate.constant >= set(candidate.rmse):
        return False, "It gives every response the same scores."
    if champion is None:
        if gain.mean > 0:
            return True, "The first model, and better than predicting the mean."
        return False, "It is no better than predicting the mean."
    if gain.low <= 0:
        return False, _no_evidence(gain, measure)
    if held_back := _held_back(candidate, champion):
        return False, f"Better overall, but {held_back}."
    return True, "Better on the held-out prompts, and not clearly worse at anything."


def _no_evidence(gain: Gain, measure: str) -> str:
    if max(abs(gain.low), abs(gain.high), abs(gain.mean)) < SAME:
        if measure == PAIRS:
            return "On every held-out prompt, it puts as many pairs in the wrong order as the champion does."
        return "It predicts the same as the champion on every held-out prompt."
    reach = "reaches 0 or below" if gain.high >= 0 else "lies below 0"
    return (
        f"No evidence that it is better: the interval of the gain {reach}. "
        f"These {gain.prompts} prompts would show a gain of about {max(gain.detectable(), SMALLEST):.3f} or more."
    )


def _held_back(candidate: HeldOut, champion: HeldOut) -> str:
    """What a better model must not lose on the way; empty if it does not."""
    worse = [key for key, value in candidate.rmse.items() if value > champion.rmse.get(key, value) + GUARD_TOLERANCE]
    if worse and candidate.on_scale and champion.on_scale:
        return f"clearly worse at {', '.join(worse)}"
    silent = sorted(candidate.constant - champion.constant)
    if silent:
        return f"it gives every response the same {', '.join(silent)}"
    if champion.right - candidate.right > max(1.0, PAIRS_TOLERANCE * candidate.pairs):
        before, after = (f"{each.right / candidate.pairs:.0%}" for each in (champion, candidate))
        return f"it puts fewer pairs in the right order: {after} instead of {before}"
    return ""


@dataclass(frozen=True)
class Predicted:
    """What a model says of one response."""

    scores: Mapping[str, float]
    reward: float


def held_out(
    tasks: Iterable[Task],
    predicted: Mapping[str, Predicted],
    *,
    weights: Mapping[str, float],
    metrics: Mapping[str, Any] = {},
    on_scale: bool = True,
) -> HeldOut:
    """Errors of predictions by response id, on a snapshot's validation tasks; labels that are missing do not count.

    weights: of the attributes in the reward, by which labels tell the better response where no preference does.
    metrics: what `rewards.learning.evaluate` measured of the same predictions, for the guards.
    """
    squares: dict[str, list[float]] = defaultdict(list)
    pairs: dict[str, list[float]] = defaultdict(list)
    by_attribute: dict[str, list[float]] = defaultdict(list)
    for task in tasks:
        for response in task.responses:
            for key, label in response.scores.items():
                square = (predicted[response.id].scores[key] - label) ** 2
                squares[task.prompt_hash].append(square)
                by_attribute[key].append(square)
        for good, bad, _ in better(task, weights):
            ahead = predicted[task.responses[good].id].reward - predicted[task.responses[bad].id].reward
            pairs[task.prompt_hash].append(0.5 if ahead == 0 else float(not ahead > 0))
    pairwise = metrics.get("pairwise", {})
    known = pairwise.get("pairs") or 0
    return HeldOut(
        squared_errors={prompt: sum(each) for prompt, each in squares.items()},
        labels={prompt: len(each) for prompt, each in squares.items()},
        rmse={key: (sum(each) / len(each)) ** 0.5 for key, each in by_attribute.items()},
        pairs=known,
        right=known * (pairwise.get("accuracy") or 0.0),
        constant=frozenset(metrics.get("constant", ())),
        wrong={prompt: sum(each) for prompt, each in pairs.items()},
        compared={prompt: len(each) for prompt, each in pairs.items()},
        on_scale=on_scale,
    )


@transaction.atomic
def promote(model: RewardModel, *, now: datetime, overruled: str = "") -> RewardModel:
    """Makes the model its project's champion, and is the yes to one that waits. An earlier one is the rollback.

    The champion itself stays as it is. `overruled` is the gate's reason against it, for the audit. Doors call
    `champions.promote`, which hears that reason first.

    Raises:
        FilesErased: there is nothing left to score with.
    """
    Project.objects.select_for_update().get(pk=model.project_id)
    model.refresh_from_db(fields=["is_champion", "promoted_at"])
    if model.is_champion:
        return model
    if model.is_erased():
        raise FilesErased(f"{model} has been erased with the snapshot that it learnt from. Promote another model.")
    others = RewardModel.objects.filter(project=model.project_id, is_champion=True).exclude(pk=model.pk)
    replaced = others.values_list("version", flat=True).first()
    others.update(is_champion=False)
    model.is_champion = True
    model.promoted_at = now
    model.save(update_fields=["is_champion", "promoted_at"])
    TrainingRun.objects.waiting().filter(pk=model.run_id).update(state=RunState.PROMOTED, finished_at=now)
    details: dict[str, audit.JSON] = {"replaced": replaced}
    if overruled:
        details["overruled"] = overruled
    audit.record("model.promoted", f"model version {model.version}", project=model.project, **details)
    return model
