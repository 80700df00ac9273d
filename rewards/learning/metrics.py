"""How far predictions are from labels: pure statistics of weighted rows, None where one is not defined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rewards.learning.calibration import calibration
from rewards.learning.data import Floats, Task
from rewards.learning.intervals import by_prompt

LOWEST, HIGHEST = 0, 4
CONSTANT = 1e-6
"""A standard deviation of predictions below which they say nothing."""
NOTHING = 1e-12
"""A variance that is only a rounding error."""
Measures = dict[str, Any]
Statistic = Callable[[Floats], float | None]


def attribute_measures(
    predicted: Floats, labels: Floats, *, mean: float, prompts: Sequence[str] | None = None
) -> Measures:
    """One attribute over the responses that have a label; `mean` is the training mean, the trivial predictor.

    With the responses' prompts also intervals and calibration. A prediction that is no number leaves all undefined.
    """
    known = np.isfinite(labels)
    p, y = predicted[known], labels[known]
    lost = int((~np.isfinite(p)).sum())
    empty = dict.fromkeys(["rmse", "mae", "spearman", "qwk", "mean_rmse", "r2"])
    if not len(y) or lost:
        return {"n": len(y), "not_finite": lost, **empty}
    statistics = {"rmse": root_mean_square(p - y), "mae": _mean(np.abs(p - y)), "spearman": ranked(p, y)}
    statistics["qwk"] = agreeing(as_label(p), as_label(y))
    values = {name: statistic(np.ones(len(y))) for name, statistic in statistics.items()}
    mean_rmse = rmse(np.full_like(y, mean), y)
    r2 = 1 - (rmse(p, y) / mean_rmse) ** 2 if mean_rmse else None
    measures = {"n": len(y), "not_finite": 0, **values, "mean_rmse": mean_rmse, "r2": r2, **_undefined(p, y)}
    if prompts is None:
        return measures
    whose = [prompt for prompt, known_here in zip(prompts, known, strict=True) if known_here]
    intervals = by_prompt(whose, lambda w: {name: statistic(w) for name, statistic in statistics.items()})
    return {**measures, "prompts": len(set(whose)), "intervals": intervals, "calibration": calibration(p, y)}


def _undefined(predicted: Floats, labels: Floats) -> Measures:
    """Why there is no correlation, where there is none."""
    if is_constant(predicted):
        return {"reason": "the same score for every response"}
    return {"reason": "the same label for every response"} if is_constant(labels) else {}


def is_constant(values: Floats) -> bool:
    return bool(values.std() < CONSTANT)


def rmse(predicted: Floats, labels: Floats) -> float:
    return float(np.sqrt(((predicted - labels) ** 2).mean()))


def as_label(values: Floats) -> Floats:
    return np.clip(np.rint(values), LOWEST, HIGHEST)


def spearman(a: Floats, b: Floats) -> float | None:
    """Pearson's correlation of average ranks; undefined when either side is constant."""
    return ranked(a, b)(np.ones(len(a)))


def quadratic_weighted_kappa(a: Floats, b: Floats) -> float | None:
    """Cohen's kappa with quadratic weights in closed form; undefined when chance alone would agree fully."""
    return agreeing(a, b)(np.ones(len(a)))


# Statistics that can be computed again and again with other weights of the rows ------------------------------


def root_mean_square(errors: Floats) -> Statistic:
    squares = errors**2
    return lambda w: float(np.sqrt(_mean_of(squares, w))) if len(w) else None


def ranked(a: Floats, b: Floats) -> Statistic:
    """Spearman's correlation; a row of weight 2 counts as two rows."""
    if not len(a) or is_constant(a) or is_constant(b):  # rounding errors have ranks too
        return lambda _: None
    first, second = _levels(a), _levels(b)

    def statistic(w: Floats) -> float | None:
        x, y = _ranks(first, w), _ranks(second, w)
        x, y = x - _mean_of(x, w), y - _mean_of(y, w)
        spread = _mean_of(x**2, w) * _mean_of(y**2, w)
        return float(_mean_of(x * y, w) / np.sqrt(spread)) if spread > NOTHING else None

    return statistic


def agreeing(a: Floats, b: Floats) -> Statistic:
    """Cohen's kappa with quadratic weights."""
    squares = (a - b) ** 2

    def statistic(w: Floats) -> float | None:
        one, other = _mean_of(a, w), _mean_of(b, w)
        by_chance = _mean_of((a - one) ** 2, w) + _mean_of((b - other) ** 2, w) + (one - other) ** 2
        return float(1 - _mean_of(squares, w) / by_chance) if by_chance > NOTHING else None

    return statistic if len(a) else lambda _: None


def _mean(values: Floats) -> Statistic:
    return lambda w: _mean_of(values, w) if len(w) else None


def _mean_of(values: Floats, weights: Floats) -> float:
    # No matrix product: for a vector, waking its threads takes longer than the sum.
    return float((values * weights).sum() / weights.sum())


def _levels(values: Floats) -> Any:
    return np.unique(values, return_inverse=True)[1]


def _ranks(levels: Any, weights: Floats) -> Floats:
    """Average ranks, counted from 1."""
    counts = np.bincount(levels, weights)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[levels], dtype=np.float64)


# People and models -----------------------------------------------------------------------------------------


def beyond_chance(gains: Floats) -> bool:
    """Whether the mean of the gains lies more than one standard error above 0; one gain alone tells nothing."""
    if len(gains) < 2:
        return False
    return bool(gains.mean() > gains.std(ddof=1) / np.sqrt(len(gains)))


def human_ceiling(tasks: Sequence[Task], predicted: Floats, attribute: str, index: int) -> Measures:
    """The other raters' mean against the rater left out, and the model against the same ratings."""
    others: list[float] = []
    left_out: list[float] = []
    model: list[float] = []
    responses = [response for task in tasks for response in task.responses]
    for row, response in enumerate(responses):
        given = [rating[attribute] for rating in response.ratings if attribute in rating]
        if len(given) < 2:
            continue
        for rating in given:
            others.append((sum(given) - rating) / (len(given) - 1))
            left_out.append(rating)
            model.append(predicted[row, index])
    return {
        "n": len(left_out),
        **_against(np.array(others), np.array(left_out), prefix=""),
        **_against(np.array(model), np.array(left_out), prefix="model_"),
    }


def _against(guesses: Floats, ratings: Floats, *, prefix: str) -> Measures:
    if not len(ratings) or not np.isfinite(guesses).all():
        return {f"{prefix}rmse": None, f"{prefix}spearman": None, f"{prefix}qwk": None}
    return {
        f"{prefix}rmse": rmse(guesses, ratings),
        f"{prefix}spearman": spearman(guesses, ratings),
        f"{prefix}qwk": quadratic_weighted_kappa(as_label(guesses), as_label(ratings)),
    }


def weighted_sum(scores: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return sum(weights[name] * scores[name] for name in weights)
