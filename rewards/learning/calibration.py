"""Measures whether predictions mean what they say: bins of predictions against what was observed in them.

A measure that is undefined is None.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rewards.learning.data import Floats

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
