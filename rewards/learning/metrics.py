"""Measures how far predictions are from labels: pure statistics of weighted rows, None where one is undefined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rewards.learning.data import USUAL_LEVELS, Floats, Task
from rewards.learning.intervals import by_prompt, calibration

CONSTANT = 1e-6
"""Predictions with a standard deviation below this are all the same."""
NOTHING = 1e-12
"""A variance below this is only a rounding error."""
Measures = dict[str, Any]
Statistic = Callable[[Floats], float | None]


def attribute_measures(
    predicted: Floats, labels: Floats, *, mean: float, prompts: Sequence[str] | None = None, levels: int = USUAL_LEVELS
) -> Measures:
    """Measures one attribute over the responses that have a label.

    predicted [responses]; labels [responses], NaN where one is missing; mean: the training mean, which is the trivial
    predictor. With the responses' prompts, intervals and calibration are included. If any prediction is not finite,
    every measure is None.
    """
    known = np.isfinite(labels)
    p, y = predicted[known], labels[known]  # [labelled responses]
    lost = int((~np.isfinite(p)).sum())
    empty = dict.fromkeys(["rmse", "mae", "spearman", "qwk", "mean_rmse", "r2"])
    if not len(y) or lost:
        return {"n": len(y), "not_finite": lost, **empty}
    statistics = {
        "rmse": root_mean_square(p - y),
        "mae": lambda w: _mean_of(np.abs(p - y), w) if len(w) else None,
        "spearman": ranked(p, y),
    }
    statistics["qwk"] = agreeing(as_label(p, levels), as_label(y, levels))
    values = {name: statistic(np.ones(len(y))) for name, statistic in statistics.items()}
    mean_rmse = rmse(np.full_like(y, mean), y)
    r2 = 1 - (rmse(p, y) / mean_rmse) ** 2 if mean_rmse else None
    measures: Measures = {"n": len(y), "not_finite": 0, **values, "mean_rmse": mean_rmse, "r2": r2}
    if constant := "score" if is_constant(p) else "label" if is_constant(y) else "":
        # There is no correlation then.
        measures["reason"] = f"the same {constant} for every response"
    if prompts is None:
        return measures
    labelled = [prompt for prompt, is_labelled in zip(prompts, known, strict=True) if is_labelled]
    intervals = by_prompt(labelled, lambda w: {name: statistic(w) for name, statistic in statistics.items()})
    return {**measures, "prompts": len(set(labelled)), "intervals": intervals, "calibration": calibration(p, y)}


def over_all(errors: Floats, labels: Floats, prompts: Sequence[str]) -> Measures:
    """Returns the RMSE over all labels of all attributes; None without labels, or where a prediction is not finite."""
    known = np.isfinite(labels)
    rows = np.nonzero(known)[0]
    if not len(rows) or not np.isfinite(errors[known]).all():
        return {"rmse": None, "n": len(rows), "intervals": {}}
    statistic = root_mean_square(errors[known])
    intervals = by_prompt([prompts[row] for row in rows.tolist()], lambda w: {"rmse": statistic(w)})
    return {"rmse": statistic(np.ones(len(rows))), "n": len(rows), "intervals": intervals}


def is_constant(values: Floats) -> bool:
    """Returns whether values [n] are all the same but for rounding errors."""
    return bool(values.std() < CONSTANT)


def rmse(predicted: Floats, labels: Floats) -> float:
    """Returns the root mean squared error; both of one shape, finite and not empty."""
    return float(np.sqrt(((predicted - labels) ** 2).mean()))


def as_label(values: Floats, levels: int) -> Floats:
    """Returns the values rounded to whole scores and clipped to 0..levels - 1; a half goes to the even score."""
    return np.clip(np.rint(values), 0, levels - 1)


def spearman(a: Floats, b: Floats) -> float | None:
    """Returns Pearson's correlation of the average ranks; None when either side is constant."""
    return ranked(a, b)(np.ones(len(a)))


def quadratic_weighted_kappa(a: Floats, b: Floats) -> float | None:
    """Returns Cohen's kappa with quadratic weights in closed form; None when chance alone would agree fully."""
    return agreeing(a, b)(np.ones(len(a)))


# Statistics that can be computed again and again with other weights of the rows ------------------------------


def root_mean_square(errors: Floats) -> Statistic:
    """Returns the root mean square of errors [rows] as a function of the rows' weights [rows]."""
    squares = errors**2
    return lambda w: float(np.sqrt(_mean_of(squares, w))) if len(w) else None


def ranked(a: Floats, b: Floats) -> Statistic:
    """Returns Spearman's correlation as a function of the rows' weights; a row of weight 2 counts as two rows."""
    # Rounding errors of a constant have ranks too, and would give a correlation of noise.
    if not len(a) or is_constant(a) or is_constant(b):
        return lambda _: None
    # The sort is done once for all resamples: weights change the ranks, never the order.
    first, second = _levels(a), _levels(b)

    def statistic(w: Floats) -> float | None:
        x, y = _ranks(first, w), _ranks(second, w)
        x, y = x - _mean_of(x, w), y - _mean_of(y, w)
        spread = _mean_of(x**2, w) * _mean_of(y**2, w)
        return float(_mean_of(x * y, w) / np.sqrt(spread)) if spread > NOTHING else None

    return statistic


def agreeing(a: Floats, b: Floats) -> Statistic:
    """Returns Cohen's kappa with quadratic weights as a function of the rows' weights [rows].

    In closed form: 1 - mean (a - b)^2 / (Var a + Var b + (mean a - mean b)^2), with population variances. The divisor
    is what the mean of (a - b)^2 would be if both sides were independent.
    """
    squares = (a - b) ** 2

    def statistic(w: Floats) -> float | None:
        mean_a, mean_b = _mean_of(a, w), _mean_of(b, w)
        by_chance = _mean_of((a - mean_a) ** 2, w) + _mean_of((b - mean_b) ** 2, w) + (mean_a - mean_b) ** 2
        return float(1 - _mean_of(squares, w) / by_chance) if by_chance > NOTHING else None

    return statistic if len(a) else lambda _: None


def _mean_of(values: Floats, weights: Floats) -> float:
    # Not values @ weights: BLAS wakes its threads even for a vector, which takes longer than the sum.
    return float((values * weights).sum() / weights.sum())


def _levels(values: Floats) -> Any:
    return np.unique(values, return_inverse=True)[1]


def _ranks(levels: Any, weights: Floats) -> Floats:
    """[rows]: average ranks, counted from 1, so that ties share a rank."""
    counts = np.bincount(levels, weights)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[levels], dtype=np.float64)


# People and models -----------------------------------------------------------------------------------------


def beyond_chance(gains: Floats) -> bool:
    """Returns whether the mean of the gains lies more than one standard error above 0; never for a single gain."""
    if len(gains) < 2:
        return False
    return bool(gains.mean() > gains.std(ddof=1) / np.sqrt(len(gains)))


def human_ceiling(
    tasks: Sequence[Task], predicted: Floats, attribute: str, index: int, *, levels: int = USUAL_LEVELS
) -> Measures:
    """Compares the mean of the other raters with the rater left out, and the model with the same ratings.

    predicted [responses, attributes], of which the attribute is column `index`. Responses with fewer than two ratings
    are left out, as nobody is left to predict the one rating by.
    """
    others: list[float] = []
    left_out: list[float] = []
    model: list[float] = []
    responses = [response for task in tasks for response in task.responses]
    for row, response in enumerate(responses):
        ratings = [rating[attribute] for rating in response.ratings if attribute in rating]
        if len(ratings) < 2:
            continue
        for rating in ratings:
            others.append((sum(ratings) - rating) / (len(ratings) - 1))
            left_out.append(rating)
            model.append(predicted[row, index])
    return {
        "n": len(left_out),
        **_against(np.array(others), np.array(left_out), levels, prefix=""),
        **_against(np.array(model), np.array(left_out), levels, prefix="model_"),
    }


def _against(guesses: Floats, ratings: Floats, levels: int, *, prefix: str) -> Measures:
    if not len(ratings) or not np.isfinite(guesses).all():
        return {f"{prefix}rmse": None, f"{prefix}spearman": None, f"{prefix}qwk": None}
    return {
        f"{prefix}rmse": rmse(guesses, ratings),
        f"{prefix}spearman": spearman(guesses, ratings),
        f"{prefix}qwk": quadratic_weighted_kappa(as_label(guesses, levels), as_label(ratings, levels)),
    }


def weighted_sum(scores: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Returns the scalar reward of the scores; every weight needs a score."""
    return sum(weights[name] * scores[name] for name in weights)
