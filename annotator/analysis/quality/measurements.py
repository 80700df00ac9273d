"""Computes each annotator's measures from their work: these are stored and shown, and flags are raised by them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from annotator.analysis.quality import patterns
from annotator.analysis.quality.flags import FlagKind, Measured
from annotator.analysis.quality.rater_effects import NOTHING, Effects, rater_effects
from annotator.analysis.quality.work_arrays import AnnotationArrays, Array

EXAMPLES = 5


@dataclass(frozen=True)
class WithOthers:
    """An annotator's mean kappa against all who rated the same responses, and how many responses these are."""

    kappa: float | None
    shared: int


def measured(
    work: AnnotationArrays, lengths: Mapping[int, int], with_others: Mapping[int, WithOthers]
) -> list[Measured]:
    """Returns the measures of each of the work's annotators, in their order.

    `lengths` holds the characters of tasks by the task's id, `with_others` is keyed by the annotator's id.
    """
    model = _fitted(work)
    parts = [
        _tasks(work, with_others),
        _speed(work, lengths),
        _sameness(work),
        _repeats(work),
        _position(work),
        _of_model(work, model),
        _accord(work, model),
        _drift(work, model),
    ]
    return [
        Measured(
            {name: measure for part in own for name, measure in part.measures.items()},
            {kind: tasks for part in own for kind, tasks in part.examples.items()},
        )
        for own in zip(*parts, strict=True)
    ]


def _tasks(work: AnnotationArrays, with_others: Mapping[int, WithOthers]) -> list[Measured]:
    tasks = patterns.of_each(work, np.ones(len(work.annotations))).astype(int).tolist()
    nobody = WithOthers(None, 0)
    judgements = [with_others.get(annotator, nobody) for annotator in work.annotators.tolist()]
    return [
        Measured({"tasks": number, "kappa": _number(judgement.kappa), "shared": judgement.shared})
        for number, judgement in zip(tasks, judgements, strict=True)
    ]


def _number(value: float | None) -> float | None:
    """Returns the value as it is stored, or None if it is undefined: JSON has no NaN."""
    return None if value is None or np.isnan(value) else round(float(value), 4)


def _most(work: AnnotationArrays, weight: Array) -> list[list[int]]:
    """Returns the EXAMPLES tasks of greatest weight of each annotator, without those of no weight."""
    weight = np.nan_to_num(weight.astype(float))
    order = np.lexsort((work.annotations["annotation"], -weight, work.annotations["annotator"]))
    order = order[weight[order] > 0]
    annotator = work.annotations["annotator"][order]
    place = np.arange(len(order)) - np.searchsorted(annotator, annotator)
    chosen = order[place < EXAMPLES]
    examples: list[list[int]] = [[] for _ in work.annotators]
    for owner, task in zip(*(work.annotations[name][chosen].tolist() for name in ("annotator", "task")), strict=True):
        examples[owner].append(task)
    return examples


# What annotations show by themselves -----------------------------------------------------------------------


def _speed(work: AnnotationArrays, lengths: Mapping[int, int]) -> list[Measured]:
    hurry = patterns.hurry(work, lengths)
    timed, hurried = (patterns.of_each(work, marks).astype(int).tolist() for marks in (hurry.timed, hurry.hurried))
    median = patterns.median_seconds(work).tolist()
    fastest = _most(work, np.where(hurry.hurried, patterns.LONGEST - work.annotations["active"], 0))
    return [
        Measured(
            {"speed": {"timed": timed[place], "hurried": hurried[place], "median_seconds": _number(median[place])}},
            {FlagKind.SPEEDING: fastest[place]},
        )
        for place in range(len(work.annotators))
    ]


def _sameness(work: AnnotationArrays) -> list[Measured]:
    sameness = patterns.sameness(work)
    compared, flat = sameness.compared.astype(int).tolist(), sameness.own.astype(int).tolist()
    others = np.divide(
        sameness.expected, sameness.compared, out=np.zeros(len(compared)), where=sameness.compared > 0
    ).tolist()
    examples = _most(work, sameness.unlike)
    return [
        Measured(
            {"sameness": {"compared": compared[place], "flat": flat[place], "others": round(others[place], 4)}},
            {FlagKind.STRAIGHT_LINING: examples[place]},
        )
        for place in range(len(work.annotators))
    ]


def _repeats(work: AnnotationArrays) -> list[Measured]:
    repeats = patterns.repeats(work)
    tasks = patterns.of_each(work, ~work.annotations["imported"]).astype(int).tolist()
    examples = _most(work, repeats.runs == repeats.longest_run[work.annotations["annotator"]])
    rows = zip(repeats.longest.astype(int).tolist(), repeats.alike.tolist(), tasks, examples, strict=True)
    return [
        Measured(
            {"repeats": {"longest": longest, "alike": _number(alike), "tasks": number}}, {FlagKind.REPEATING: of_run}
        )
        for longest, alike, number, of_run in rows
    ]


def _position(work: AnnotationArrays) -> list[Measured]:
    position = patterns.position(work)
    rows = zip(position.preferences.astype(int).tolist(), position.first.astype(int).tolist(), strict=True)
    return [Measured({"position": {"preferences": preferences, "first": first}}) for preferences, first in rows]


# Against everybody's ratings -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Model:
    """The rater effects by attribute, and two means over the scores of each annotation, NaN if nobody else has rated.

    `distance` is the mean absolute distance from what the others make likely, `surprise` the mean surprise, with sign.
    Two sums say how an annotation follows the others: `common` of the products of its scores and the likely ones, each
    less the annotator's mean, and `likely` of the squares of the likely ones.
    """

    effects: Mapping[str, Effects]
    distance: Array
    surprise: Array
    common: Array
    likely: Array


def _fitted(work: AnnotationArrays) -> _Model:
    effects, count = {}, len(work.annotations)
    distance, surprise, scored, common, likely = np.zeros((5, count))
    for column, key in enumerate(work.attributes):
        scores = work.ratings["scores"][:, column]
        counts = work.annotations["counts"][work.ratings["annotation"]] & (scores >= 0)
        place = work.ratings["annotation"][counts]
        rater = work.annotations["annotator"][place]
        fitted = rater_effects(work.ratings["response"][counts], rater, scores[counts], count=len(work.annotators))
        known = ~np.isnan(fitted.surprise)
        own, others = _centred(work, fitted, place[known], known)
        common += np.bincount(place[known], own * others, count)
        likely += np.bincount(place[known], others**2, count)
        distance += np.bincount(place[known], np.abs(fitted.distance[known]), count)
        surprise += np.bincount(place[known], fitted.surprise[known], count)
        scored += np.bincount(place[known], minlength=count)
        effects[key] = fitted
    divisor = np.where(scored, scored, np.nan)
    return _Model(effects, distance / divisor, surprise / divisor, common, likely)


def _centred(work: AnnotationArrays, effects: Effects, place: Array, known: Array) -> tuple[Array, Array]:
    """Returns the known scores and what the others make likely, less each annotator's mean, on scales of one width."""
    rater = work.annotations["annotator"][place]
    likely = effects.likely[known]
    both = np.stack([likely + effects.distance[known], likely])
    ratings = np.maximum(np.bincount(rater, minlength=len(work.annotators)), 1)
    means = np.stack([np.bincount(rater, values, len(work.annotators)) for values in both]) / ratings
    own, others = (both - means[:, rater]) / max(both[0].std() if len(place) else 0.0, NOTHING)
    return own, others


def _of_model(work: AnnotationArrays, model: _Model) -> list[Measured]:
    furthest = _most(work, model.distance)
    most_off = _most(work, np.abs(model.surprise))
    by_annotator = []
    for place in range(len(work.annotators)):
        leaning: dict[str, Any] = dict.fromkeys(model.effects)
        scatter: dict[str, Any] = dict.fromkeys(model.effects)
        for key, effect in model.effects.items():
            if effect.ratings[place]:
                leaning[key] = {"levels": _number(effect.leaning[place]), "error": _number(effect.error[place])}
                scatter[key] = {
                    "levels": _number(effect.scatter[place]),
                    "usual": _number(effect.usual_scatter),
                    "stretch": _number(effect.stretch[place]),
                    "reliability": _number(effect.reliability[place]),
                }
        ratings = max((int(effect.ratings[place]) for effect in model.effects.values()), default=0)
        examples = {
            FlagKind.DISAGREEING: furthest[place],
            FlagKind.LEANING: furthest[place],
            FlagKind.SCATTERING: most_off[place],
        }
        by_annotator.append(Measured({"ratings": ratings, "leaning": leaning, "scatter": scatter}, examples))
    return by_annotator


def _accord(work: AnnotationArrays, model: _Model) -> list[Measured]:
    """Measures how far each annotator's scores follow what the others make likely: 0 is chance, 1 is usual.

    The slope is a ratio of sums, and its error treats tasks as the units (Cochran, Sampling Techniques, 1977, section
    6.4).
    """
    shared = patterns.of_each(work, model.likely > 0)
    common, likely = (patterns.of_each(work, values) for values in (model.common, model.likely))
    slope = common / np.maximum(likely, NOTHING)
    residual = model.common - slope[work.annotations["annotator"]] * model.likely
    squares = patterns.of_each(work, residual**2) * shared / np.maximum(shared - 1, 1)
    error = np.sqrt(squares) / np.maximum(likely, NOTHING)
    rows = zip(shared.astype(int).tolist(), slope.tolist(), error.tolist(), strict=True)
    return [
        Measured({"accord": {"tasks": tasks, "slope": _number(slope), "error": _number(error)} if tasks > 1 else None})
        for tasks, slope, error in rows
    ]


def _drift(work: AnnotationArrays, model: _Model) -> list[Measured]:
    """Measures how far the second half of each annotator's work lies above the first, against the others.

    Imported annotations are left out, because they all came at once and so have no order.
    """
    places = np.flatnonzero(~np.isnan(model.surprise) & ~work.annotations["imported"])
    places = places[np.lexsort((work.annotations["submitted"][places], work.annotations["annotator"][places]))]
    annotator, surprise = work.annotations["annotator"][places], model.surprise[places]
    size = np.bincount(annotator, minlength=len(work.annotators))
    place = np.arange(len(places)) - (np.cumsum(size) - size)[annotator]
    half = 2 * annotator + (2 * place >= size[annotator])
    sums = [np.bincount(half, surprise**power, 2 * len(size)).reshape(-1, 2) for power in (0, 1, 2)]
    # Annotators with fewer than two annotations in a half divide by 0; they are left out below.
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = sums[1] / sums[0]
        error = np.sqrt(((sums[2] / sums[0] - mean**2) / (sums[0] - 1)).sum(1))
    drifts = zip(size.tolist(), (mean[:, 1] - mean[:, 0]).tolist(), error.tolist(), strict=True)
    return [
        Measured({"drift": {"tasks": tasks, "levels": _number(levels), "error": _number(error)} if tasks > 3 else None})
        for tasks, levels, error in drifts
    ]
