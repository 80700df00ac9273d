"""Computes 95 % intervals by a seeded bootstrap over prompts, and the calibration of predictions.

Prompts are resampled rather than rows, because the rows of one prompt are alike: to draw them independently would make
the intervals too narrow. Calibration compares bins of predictions with what was observed in them: None is undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rewards.learning.data import Floats

RESAMPLES = 1000
SEED = 0
Interval = list[float]
Statistics = Callable[[Floats], Mapping[str, float | None]]


def by_prompt(prompts: Sequence[str], statistics: Statistics, *, seed: int = SEED) -> dict[str, Interval | None]:
    """Returns the interval of each statistic; None where too few draws define it, and nothing for a single prompt.

    prompts [rows]: the prompt of each row. statistics: a function from the rows' weights [rows], which say how often
    each row was drawn, to named values.
    """
    names, rows = np.unique(np.asarray(prompts), return_inverse=True)
    if len(names) < 2:
        return {}
    dice = np.random.default_rng(seed)
    drawn: dict[str, list[float]] = {}
    for _ in range(RESAMPLES):
        times = np.bincount(dice.integers(0, len(names), len(names)), minlength=len(names))
        for name, value in statistics(times[rows].astype(np.float64)).items():
            drawn.setdefault(name, []).append(np.nan if value is None else value)
    return {name: bounds(np.asarray(values)) for name, values in drawn.items()}


def of_share(values: Floats, prompts: Sequence[str]) -> dict[str, Interval | None]:
    """Returns the interval of the mean of values [rows] that lie between 0 and 1, as "accuracy"; as `by_prompt` does.

    Where all are 0, or all are 1, every draw is the same, which does not mean that nothing else can come. The interval
    is then that of Clopper and Pearson (1934) for so many prompts.
    """
    intervals = by_prompt(prompts, lambda weights: {"accuracy": float((values * weights).sum() / weights.sum())})
    if intervals and len(extremes := set(values.tolist())) == 1 and extremes <= {0.0, 1.0}:
        reach = 0.025 ** (1 / len(set(prompts)))
        intervals["accuracy"] = [reach, 1.0] if 1.0 in extremes else [0.0, 1 - reach]
    return intervals


def drawn_means(values: Floats, *, seed: int = SEED) -> Floats:
    """[resamples]: means of values drawn with replacement; NaN for a single value, which says nothing about spread."""
    if len(values) < 2:
        return np.full(RESAMPLES, np.nan)
    dice = np.random.default_rng(seed)
    return np.array([values[dice.integers(0, len(values), len(values))].mean() for _ in range(RESAMPLES)])


def bounds(drawn: Floats) -> Interval | None:
    """Returns the middle 95 % of the drawn values; None where more than one draw in twenty was undefined."""
    defined = drawn[np.isfinite(drawn)]
    if len(defined) < 0.95 * len(drawn) or not len(defined):
        return None
    return [float(bound) for bound in np.quantile(defined, [0.025, 0.975])]


# Calibration ------------------------------------------------------------------------------------------------


BINS = 10
Measures = dict[str, Any]


def calibration(predicted: Floats, labels: Floats) -> Measures:
    """Returns the mean label in ten bins of equally many predictions, and the line of the labels on the predictions.

    predicted, labels: [n], finite. `error` is the distance between a bin's mean prediction and its mean label,
    averaged over the bins by their rows. A calibrated model has slope 1, intercept 0 and error 0.
    """
    # A stable sort keeps equal predictions in the order of the rows: the same bins on every machine.
    order = np.argsort(predicted, kind="stable")
    parts = [part for part in np.array_split(order, BINS) if len(part)]
    bins = [
        {"n": len(part), "predicted": float(predicted[part].mean()), "label": float(labels[part].mean())}
        for part in parts
    ]
    slope, intercept = line(predicted, labels)
    error = _calibration_error(bins, "predicted", "label")
    return {"n": len(predicted), "error": error, "slope": slope, "intercept": intercept, "bins": bins}


def line(predicted: Floats, labels: Floats) -> tuple[float | None, float | None]:
    """Returns slope and intercept of the labels [n] on the predictions [n] by least squares.

    Both are None for a single row or for predictions that differ by no more than a rounding error.
    """
    if len(predicted) < 2 or np.ptp(predicted) < 1e-9:
        return None, None
    centred = predicted - predicted.mean()
    slope = float(centred @ (labels - labels.mean()) / (centred @ centred))
    return slope, float(labels.mean() - slope * predicted.mean())


def pairwise_calibration(differences: Floats) -> Measures:
    """Measures `sigmoid(|d|)` as the probability that the response with the higher reward is the better one.

    Returns its expected calibration error (Guo et al. 2017, equation 3) in ten bins from 0.5 to 1. differences
    [pairs]: the reward of the better response minus that of the worse one; a tie is half right.
    """
    known = differences[np.isfinite(differences)]
    if not len(known):
        return {"n": 0, "ece": None, "bins": []}
    # The clip keeps exp from underflowing; beyond 50 the confidence is 1 in float64 anyway.
    confidence = 1 / (1 + np.exp(-np.minimum(np.abs(known), 50)))
    right = np.where(known == 0, 0.5, known > 0)
    # A confidence of 1 belongs to the last bin, not to one beyond it.
    places = np.minimum((confidence - 0.5) * 2 * BINS, BINS - 1).astype(int)
    bins = [
        {"n": int(here.sum()), "confidence": float(confidence[here].mean()), "accuracy": float(right[here].mean())}
        for here in (places == place for place in range(BINS))
        if here.any()
    ]
    return {"n": len(known), "ece": _calibration_error(bins, "confidence", "accuracy"), "bins": bins}


def _calibration_error(bins: list[dict[str, Any]], predicted: str, observed: str) -> float:
    gaps = [abs(group[predicted] - group[observed]) for group in bins]
    return float(np.average(gaps, weights=[group["n"] for group in bins]))
