"""Decides whether a candidate replaces the champion: a pure rule over errors on the same held-out prompts."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from itertools import combinations
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from annotator.infrastructure import audit
from annotator.infrastructure.refusals import Refusal
from annotator.models import Project
from rewards import announcements
from rewards.learning.data import USUAL_LEVELS, Task
from rewards.learning.paired_gain import Gain, confidence_at, paired_gain
from rewards.learning.pairs import better
from rewards.models import RewardModel, RunState, TrainingRun
from rewards.reasons import PAIRS, SQUARES, Reason, coded

FEWEST_PROMPTS = 5
"""Held-out prompts below which no model is promoted: chance would decide."""
GUARD_TOLERANCE = 0.05
"""The most by which the RMSE of any one attribute may rise in a promotion, if its scale were that of five levels."""
ON_SCALE = ("regression", "joint")
"""Last stages of training after which scores are on the scale of the labels; after others only their order counts."""
SAME = 1e-9
"""A gain below this is only a rounding error."""
SMALLEST = 0.001
"""The smallest gain that a reason names: below it three digits would say 0."""
PAIRS_TOLERANCE = 0.03
"""The most by which the share of pairs in the right order may fall; losing a single pair is always allowed."""


@dataclass(frozen=True)
class HeldOut:
    """A model's errors on the held-out prompts: by prompt, the summed squared error and the number of labels in it.

    Errors are counted as if every scale had five levels, from 0 to 4, so that longer ones weigh no more than others.

    Of a prompt's `compared` pairs, `wrong` are in the wrong order, and over all prompts `right` of `pairs` in the right
    one; a tie counts half on both sides. `constant` attributes get the same score everywhere. Unless the model is
    `on_scale`, only the order of its scores has a meaning. `of_segments` holds each aspect's RMSE over the held-out
    segments, which are on their scale in any case; it is empty for a model that scores no segments. `rated` is the
    number of labels as snapshots count them: of responses with a label, however many attributes it has.
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
    of_segments: Mapping[str, float] = field(default_factory=dict)
    rated: int = 0


@dataclass(frozen=True)
class Verdict:
    """The decision and its evidence. `gain` is how much the `measure` falls, with its interval of `confidence`.

    `detectable` is the gain that so many prompts would show four times in five. `look` counts the comparisons with the
    same rival. `over_length` is the gain in the order of pairs over the rule that the longer response is the better
    one; None where nothing is compared. `before` is the measure of the rival, from which the candidate's differs by the
    gain; None for verdicts of earlier versions. `labels` and `pairs` are what there was to judge by: responses with a
    label, and pairs of which people said or rated which is better; 0 for verdicts of earlier versions.
    """

    promote: bool
    reason: Reason
    against: str
    gain: float
    low: float
    high: float
    prompts: int
    detectable: float = 0.0
    measure: str = SQUARES
    look: int = 1
    confidence: float = 0.95
    over_length: float | None = None
    before: float | None = None
    labels: int = 0
    pairs: int = 0

    def as_json(self) -> dict[str, Any]:
        """Returns the verdict for the run's row, with None for NaN and infinity, which PostgreSQL refuses in JSON."""
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(self).items()
        }


def decide(
    candidate: HeldOut, champion: HeldOut | None, mean: HeldOut, *, longer: HeldOut | None = None, look: int = 1
) -> Verdict:
    """Promotes on evidence: the lower bound of the gain lies above 0 and no attribute gets clearly worse.

    The first model of a project has no champion to beat. It has to do better than predicting the mean, and to order
    pairs better than `longer`, the rule that the longer response is the better one. All were measured on the same
    prompts, from which none of them has learnt. `look` counts the comparisons with this rival, from 1: later ones need
    more evidence.
    """
    against, rival = ("the champion", champion) if champion else ("predicting the mean", mean)
    measure = SQUARES if candidate.on_scale and rival.on_scale and candidate.labels else PAIRS
    gain = _gain(candidate, rival, measure=measure, look=look)
    length = _gain(candidate, longer, measure=PAIRS) if longer and candidate.compared else None
    promote, reason = _ruled(gain, candidate, champion, measure=measure, length=length)
    errors, counts = (rival.wrong, rival.compared) if measure == PAIRS else (rival.squared_errors, rival.labels)
    return Verdict(
        promote,
        reason,
        against,
        gain.mean,
        gain.low,
        gain.high,
        gain.prompts,
        gain.detectable(),
        measure,
        look,
        gain.confidence,
        length.mean if length else None,
        sum(errors.values()) / sum(counts.values()) if counts else None,
        labels=candidate.rated,
        pairs=candidate.pairs,
    )


def _gain(candidate: HeldOut, rival: HeldOut, *, measure: str, look: int = 1) -> Gain:
    by_pairs = measure == PAIRS
    counts = candidate.compared if by_pairs else candidate.labels
    before, after = ((measured.wrong if by_pairs else measured.squared_errors) for measured in (rival, candidate))
    prompts = sorted(counts)
    if not prompts:
        return Gain(0.0, 0.0, 0.0, 0)
    return paired_gain(
        [before[prompt] for prompt in prompts],
        [after[prompt] for prompt in prompts],
        [counts[prompt] for prompt in prompts],
        confidence=confidence_at(look),
    )


def _ruled(
    gain: Gain, candidate: HeldOut, champion: HeldOut | None, *, measure: str, length: Gain | None
) -> tuple[bool, Reason]:
    if gain.prompts < FEWEST_PROMPTS:
        return False, coded("too_few_prompts", prompts=gain.prompts, fewest=FEWEST_PROMPTS)
    if not math.isfinite(gain.mean):
        return False, coded("not_numbers")
    if candidate.rmse and candidate.constant >= set(candidate.rmse):
        return False, coded("all_the_same")
    if gain.low <= 0:
        return False, _no_evidence(gain, measure, "champion" if champion else "mean")
    if champion is None:
        if length is not None and length.mean <= 0:
            return False, coded("no_better_than_length")
        return True, coded("first")
    if lost := _lost(candidate, champion):
        return False, lost
    return True, coded("better")


def _no_evidence(gain: Gain, measure: str, rival: str) -> Reason:
    if max(abs(gain.low), abs(gain.high), abs(gain.mean)) < SAME:
        return coded("as_many_wrong" if measure == PAIRS else "same_predictions", rival=coded(rival))
    code = "reaches_zero" if gain.high >= 0 else "below_zero"
    return coded(code, prompts=gain.prompts, gain=max(gain.detectable(), SMALLEST))


def _lost(candidate: HeldOut, champion: HeldOut) -> Reason | None:
    """Returns why a model that is better on the whole is not promoted: what it has lost; None if nothing."""
    worse = [key for key, value in candidate.rmse.items() if value > champion.rmse.get(key, value) + GUARD_TOLERANCE]
    if worse and candidate.on_scale and champion.on_scale:
        return coded("worse_at", attributes=", ".join(worse))
    worse = [
        key
        for key, value in champion.of_segments.items()
        if candidate.of_segments.get(key, math.inf) > value + GUARD_TOLERANCE
    ]
    if worse and candidate.of_segments:
        return coded("worse_at_segments", aspects=", ".join(worse))
    if worse:
        return coded("no_segments")
    silent = sorted(candidate.constant - champion.constant)
    if silent:
        return coded("same_attributes", attributes=", ".join(silent))
    if champion.right - candidate.right > max(1.0, PAIRS_TOLERANCE * candidate.pairs):
        before, after = (measured.right / candidate.pairs for measured in (champion, candidate))
        return coded("fewer_pairs", after=after, before=before)
    return None


@dataclass(frozen=True)
class Predicted:
    """The scores of one response by attribute, and its reward.

    `same_as` has the ids of responses that the model has read as the same tokens.
    """

    scores: Mapping[str, float]
    reward: float
    same_as: Sequence[str] = ()


def predicted_in(row: Mapping[str, Any]) -> Predicted:
    """Returns what a row of predictions says."""
    return Predicted(row["scores"], row["reward"], row.get("same_as", ()))


def with_alike(tasks: Iterable[Task], *models: Mapping[str, Predicted]) -> list[Task]:
    """Returns the tasks with the pairs of responses that are the same tokens to all of the models.

    Nobody is judged by those. A pair that only one of two models cannot tell apart counts: the other one can.
    """

    def alike(task: Task) -> tuple[tuple[int, int], ...]:
        ids = [response.id for response in task.responses]
        return tuple(
            (first, second)
            for first, second in combinations(range(len(ids)), 2)
            if all(ids[second] in model[ids[first]].same_as for model in models)
        )

    return [replace(task, alike=alike(task)) for task in tasks]


def held_out(
    tasks: Iterable[Task],
    predicted: Mapping[str, Predicted],
    *,
    weights: Mapping[str, float],
    metrics: Mapping[str, Any] = {},
    levels: Mapping[str, int] = {},
    on_scale: bool = True,
    attributes: Collection[str] | None = None,
) -> HeldOut:
    """Computes the errors of predictions, by response id, on tasks that were not learnt from, without missing labels.

    attributes: those that every model of the comparison predicts, as the rubric may change between two of them; other
    labels judge neither. None where all of them are predicted.

    weights: the attributes' weights in the reward, by which labels decide which response is better where no preference
    does. metrics: the measures of the same predictions by `rewards.learning.evaluate`, for the guards. levels: the
    number of levels of each attribute that has not five.
    """
    stretch = {key: (USUAL_LEVELS - 1) / (count - 1) for key, count in levels.items()}
    squares: dict[str, list[float]] = defaultdict(list)
    pairs: dict[str, list[float]] = defaultdict(list)
    by_attribute: dict[str, list[float]] = defaultdict(list)
    rated = 0
    for task in tasks:
        for response in task.responses:
            labels = {key: label for key, label in response.scores.items() if attributes is None or key in attributes}
            rated += bool(labels)
            for key, label in labels.items():
                square = ((predicted[response.id].scores[key] - label) * stretch.get(key, 1)) ** 2
                squares[task.prompt_hash].append(square)
                by_attribute[key].append(square)
        for good, bad, _strength in better(task, weights):
            ahead = predicted[task.responses[good].id].reward - predicted[task.responses[bad].id].reward
            # `not ahead > 0` instead of `ahead < 0`, so that a NaN is wrong.
            pairs[task.prompt_hash].append(0.5 if ahead == 0 else float(not ahead > 0))
    return HeldOut(
        squared_errors={prompt: sum(errors) for prompt, errors in squares.items()},
        labels={prompt: len(errors) for prompt, errors in squares.items()},
        rmse={key: (sum(errors) / len(errors)) ** 0.5 for key, errors in by_attribute.items()},
        pairs=sum(map(len, pairs.values())),
        right=sum(1 - wrong for of_prompt in pairs.values() for wrong in of_prompt),
        constant=frozenset(metrics.get("constant", ())),
        wrong={prompt: sum(pair) for prompt, pair in pairs.items()},
        compared={prompt: len(pair) for prompt, pair in pairs.items()},
        on_scale=on_scale,
        of_segments={
            key: measures["rmse"] * stretch.get(key, 1)
            for key, measures in (metrics.get("segments") or {}).get("aspects", {}).items()
            if measures.get("rmse") is not None
        },
        rated=rated,
    )


def by_length(tasks: Iterable[Task], *, weights: Mapping[str, float]) -> HeldOut:
    """Computes the errors of the rule that the longer response, in characters, is the better one."""
    tasks = list(tasks)
    predicted = {
        # Its scores are those of the labels: only the order of its rewards is judged.
        response.id: Predicted(response.scores, float(len(response.text)))
        for task in tasks
        for response in task.responses
    }
    return held_out(tasks, predicted, weights=weights, on_scale=False)


@transaction.atomic
def promote(model: RewardModel, *, now: datetime, overruled: str = "") -> RewardModel:
    """Makes the model its project's champion; if its run waits for a decision, this is the yes.

    Promoting an earlier champion rolls back; promoting the present one changes nothing. `overruled` is the gate's
    reason against the model, for the audit. Doors call `champions.promote`, which asks for confirmation first.

    Raises:
        Refusal: there is nothing left to score with.
    """
    # Two promotions at once, or a promotion and an erasure, take turns at the project's row.
    Project.objects.select_for_update().get(pk=model.project_id)
    model.refresh_from_db(fields=["is_champion", "promoted_at"])
    if model.is_champion:
        return model
    if model.is_erased():
        text = _("%(model)s has been erased with the snapshot that it learnt from. Promote another model.")
        raise Refusal(text % {"model": model}, code="files_erased")
    others = RewardModel.objects.filter(project=model.project_id, is_champion=True).exclude(pk=model.pk)
    replaced = others.values_list("version", flat=True).first()
    # The old champion steps back first: a constraint allows one in each project at any moment.
    others.update(is_champion=False)
    model.is_champion = True
    model.promoted_at = now
    model.save(update_fields=["is_champion", "promoted_at"])
    if TrainingRun.objects.waiting().filter(pk=model.run_id).update(state=RunState.PROMOTED, finished_at=now):
        announcements.run_ended(model.run, RunState.PROMOTED)
    announcements.model_promoted(model, replaced=replaced)
    details: dict[str, audit.JSON] = {"replaced": replaced}
    if overruled:
        details["overruled"] = overruled
    audit.record("model.promoted", f"model version {model.version}", project=model.project, **details)
    return model
