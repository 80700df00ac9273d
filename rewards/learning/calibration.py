"""Whether predictions mean what they say: bins of predictions against what was seen in them. None where undefined."""

from __future__ import annotations

from typing import Any

import numpy as np

from rewards.learning.data import Floats

BINS = 10
Measures = dict[str, Any]


def calibration(predicted: Floats, labels: Floats) -> Measures:
    """Of scores: the mean label in ten bins of equally many predictions, and the line of labels on predictions.

    A calibrated model has slope 1, intercept 0 and error 0: the bins' mean distance, weighted by their rows.
    """
    order = np.argsort(predicted, kind="stable")
    parts = [part for part in np.array_split(order, BINS) if len(part)]
    bins = [
        {"n": len(part), "predicted": float(predicted[part].mean()), "label": float(labels[part].mean())}
        for part in parts
    ]
    slope, intercept = line(predicted, labels)
    error = _error(bins, "predicted", "label")
    return {"n": len(predicted), "error": error, "slope": slope, "intercept": intercept, "bins": bins}


def line(predicted: Floats, labels: Floats) -> tuple[float | None, float | None]:
    """Slope and intercept of the labels on the predictions, by least squares; undefined for constant predictions."""
    if len(predicted) < 2 or np.ptp(predicted) < 1e-9:
        return None, None
    centred = predicted - predicted.mean()
    slope = float(centred @ (labels - labels.mean()) / (centred @ centred))
    return slope, float(labels.mean() - slope * predicted.mean())


def pairwise_calibration(differences: Floats) -> Measures:
    """Of pairs: sigmoid(d) as the probability that the response with the higher reward is the better one.

    Its expected calibration error (Guo et al. 2017, equation 3) in ten bins from 0.5 to 1. differences [pairs]: reward
    of the better minus the worse; a tie is half right.
    """
    known = differences[np.isfinite(differences)]
    if not len(known):
        return {"n": 0, "ece": None, "bins": []}
    confidence = 1 / (1 + np.exp(-np.minimum(np.abs(known), 50)))
    right = np.where(known == 0, 0.5, known > 0)
    places = np.minimum((confidence - 0.5) * 2 * BINS, BINS - 1).astype(int)
    bins = [
        {"n": int(here.sum()), "confidence": float(confidence[here].mean()), "accuracy": float(right[here].mean())}
        for here in (places == place for place in range(BINS))
        if here.any()
    ]
    return {"n": len(known), "ece": _error(bins, "confidence", "accuracy"), "bins": bins}


def _error(bins: list[dict[str, Any]], said: str, seen: str) -> float:
    return float(np.average([abs(group[said] - group[seen]) for group in bins], weights=[group["n"] for group in bins]))
