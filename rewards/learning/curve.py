"""The learning curve: what more labels have brought so far, and what the next ones would bring. NumPy only.

The ridge on frozen features is refitted on nested subsets of the train prompts and judged on train prompts held back
for it, in several seeded draws; the rows by which promotion decides are not touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewards.learning.data import Floats
from rewards.learning.ridge import labelled_alike, scaling_of, solve_ridge

Ints = NDArray[np.int64]
DRAWS = 10
SIZES = 7
HELD_BACK = 0.25
FEWEST_PROMPTS = 30
SMALLEST = 8
"""Prompts of the smallest subset."""
NEXT = 1_000
FAR = 3.0
"""Beyond so many times the labels that are there, an extrapolation is a guess."""
MOST_DIRECTIONS = 400
"""Features are first turned to as many of their principal directions: a refit then takes milliseconds."""
EXPONENTS = np.linspace(0.1, 1.5, 29)
RESAMPLES = 400


@dataclass(frozen=True)
class Rows:
    """A row per response: features [n, d], targets [n, k] with NaN for a missing label, and its prompt.

    `pairs` holds two rows each, the first of which people find better by the rewards `weights` [k] give.
    """

    features: Floats
    targets: Floats
    prompts: Sequence[str]
    weights: Sequence[float]
    pairs: Sequence[tuple[int, int]] | Ints = ()


@dataclass(frozen=True)
class Point:
    """A size of the training data in responses with a label and in prompts; means over the draws, 95 % intervals."""

    labels: int
    prompts: int
    rmse: float
    low: float
    high: float
    accuracy: float | None
    accuracy_low: float | None
    accuracy_high: float | None


@dataclass(frozen=True)
class PowerLaw:
    """floor + slope * labels ** -exponent."""

    floor: float
    slope: float
    exponent: float

    def at(self, labels: float) -> float:
        return float(self.floor + self.slope * labels**-self.exponent)


@dataclass(frozen=True)
class Outlook:
    """What `more` labels would take off the RMSE, with a 95 % interval; `far`: much beyond what was measured."""

    labels: int
    more: int
    rmse_now: float
    rmse_then: float
    gain: float
    low: float
    high: float
    evidence: bool
    far: bool


@dataclass(frozen=True)
class _Draw:
    """One split and order of the prompts: per size labels, RMSE and accuracy [sizes]."""

    labels: Floats
    rmse: Floats
    accuracy: Floats


def learning_curve(rows: Rows, *, alphas: Sequence[float], blocks: Sequence[int], seed: int) -> dict[str, Any] | None:
    """The curve, its power law and the outlook as JSON; None where there are too few prompts to draw one.

    alphas: the ridge's penalty per attribute, as chosen on all rows; the best one hardly depends on how many those are.
    """
    names, groups = np.unique(np.asarray(rows.prompts), return_inverse=True)
    if len(names) < FEWEST_PROMPTS or not np.isfinite(rows.targets).any(axis=0).all():
        return None
    directions = _directions(scaling_of(rows.features, blocks).apply(rows.features), seed)
    sizes = _sizes(len(names) - round(HELD_BACK * len(names)))
    draws = [
        _draw(directions, rows, groups, np.asarray(alphas), sizes, np.random.default_rng([seed, number]))
        for number in range(DRAWS)
    ]
    law, outlook = _outlook(draws, labels=int(np.isfinite(rows.targets).any(axis=1).sum()), seed=seed)
    points = [asdict(point) for point in _points(draws, sizes)]
    return {"points": points, "law": asdict(law), "outlook": asdict(outlook), "draws": DRAWS}


def _sizes(most: int) -> list[int]:
    """Prompts of each subset, in even steps of a logarithm."""
    return sorted({round(size) for size in np.geomspace(min(SMALLEST, most), most, SIZES)})


def _directions(features: Floats, seed: int) -> Floats:
    """[n, d] turned to at most MOST_DIRECTIONS columns; where d is larger, by a seeded randomised projection.

    Halko, Martinsson and Tropp 2011, algorithm 4.4 with one power iteration. Exact where d is not larger.
    """
    if features.shape[1] <= MOST_DIRECTIONS:
        return features
    test = np.random.default_rng(seed).normal(size=(features.shape[1], MOST_DIRECTIONS))
    basis, _ = np.linalg.qr(features.T @ (features @ (features.T @ (features @ test))))
    return np.asarray(features @ basis, dtype=np.float64)


# One draw --------------------------------------------------------------------------------------------------


def _draw(
    features: Floats, rows: Rows, groups: Ints, alphas: Floats, sizes: list[int], random: np.random.Generator
) -> _Draw:
    order = random.permutation(groups.max() + 1)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    place = rank[groups]  # [n]: when the row's prompt comes in
    held = place >= sizes[-1]
    pairs = np.array([pair for pair in rows.pairs if held[pair[0]]], dtype=np.int64).reshape(-1, 2)
    labels, errors, accuracies = [], [], []
    for size in sizes:
        fit = place < size
        predicted = refitted(features, rows.targets, fit, alphas)
        labels.append(np.isfinite(rows.targets[fit]).any(axis=1).sum())
        errors.append(np.sqrt(np.nanmean((predicted[held] - rows.targets[held]) ** 2)))
        accuracies.append(_accuracy(predicted @ np.asarray(rows.weights), pairs))
    return _Draw(np.array(labels, dtype=np.float64), np.array(errors), np.array(accuracies))


def _accuracy(rewards: Floats, pairs: Ints) -> float:
    return float(np.mean(rewards[pairs[:, 0]] > rewards[pairs[:, 1]])) if len(pairs) else float("nan")


def refitted(features: Floats, targets: Floats, fit: NDArray[np.bool_], alphas: Floats) -> Floats:
    """[n, k]: ridges fitted on the rows of `fit`. Attributes with the same rows labelled share one decomposition."""
    predicted = np.empty(targets.shape)
    known = np.isfinite(targets) & fit[:, None]
    for columns in labelled_alike(known):
        labelled = known[:, columns[0]]
        if not labelled.any():
            # Nothing was drawn: the middle of the scale.
            predicted[:, columns] = 2.0
            continue
        weight, bias = solve_ridge(features[labelled], targets[labelled][:, columns], alphas[columns])
        predicted[:, columns] = features @ weight.T + bias
    return predicted


# All draws -------------------------------------------------------------------------------------------------


def _spread(values: Floats) -> Floats:
    """Standard errors of the means [sizes] of values [draws, sizes].

    Draws share their data, so they scatter less than new data would: Nadeau and Bengio 2003, equation 9.
    """
    return np.asarray(values.std(axis=0, ddof=1) * np.sqrt(1 / len(values) + HELD_BACK / (1 - HELD_BACK)))


def _points(draws: Sequence[_Draw], sizes: Sequence[int]) -> Iterator[Point]:
    labels = np.stack([draw.labels for draw in draws]).mean(axis=0)
    errors, accuracies = (np.stack([vars(draw)[name] for draw in draws]) for name in ("rmse", "accuracy"))
    for i, size in enumerate(sizes):
        error, accuracy = _interval(errors, i), _interval(accuracies, i)
        paired = accuracy if np.isfinite(accuracy).all() else (None, None, None)
        yield Point(round(labels[i]), size, *error, *paired)


def _interval(values: Floats, column: int) -> tuple[float, float, float]:
    mean, error = float(values[:, column].mean()), 1.96 * float(_spread(values)[column])
    return mean, mean - error, mean + error


def fit_power_law(labels: Floats, errors: Floats) -> PowerLaw:
    """Least squares over a grid of exponents; the floor is not below 0, the slope may be where errors rise."""
    falling = labels ** -EXPONENTS[:, None]  # [exponents, sizes]
    centred = falling - falling.mean(axis=1, keepdims=True)
    slopes = centred @ (errors - errors.mean()) / (centred**2).sum(axis=1)
    floors = errors.mean() - slopes * falling.mean(axis=1)
    # Without a floor, where the best one would lie below 0.
    slopes = np.where(floors < 0, falling @ errors / (falling**2).sum(axis=1), slopes)
    floors = np.maximum(floors, 0)
    best = ((floors[:, None] + slopes[:, None] * falling - errors) ** 2).sum(axis=1).argmin()
    return PowerLaw(float(floors[best]), float(slopes[best]), float(EXPONENTS[best]))


def _outlook(draws: Sequence[_Draw], *, labels: int, seed: int) -> tuple[PowerLaw, Outlook]:
    sizes = np.stack([draw.labels for draw in draws])
    errors = np.stack([draw.rmse for draw in draws])
    law = fit_power_law(sizes.mean(axis=0), errors.mean(axis=0))
    now, then = law.at(labels), law.at(labels + NEXT)
    chosen = np.random.default_rng([seed, DRAWS]).integers(0, len(draws), size=(RESAMPLES, len(draws)))
    laws = (fit_power_law(sizes[rows].mean(axis=0), errors[rows].mean(axis=0)) for rows in chosen)
    gains = np.array([fitted.at(labels) - fitted.at(labels + NEXT) for fitted in laws])
    # As in _spread: a bootstrap over draws alone gives the first term under the root.
    wider = np.sqrt(1 + len(draws) * HELD_BACK / (1 - HELD_BACK))
    low, high = now - then + wider * (np.quantile(gains, [0.025, 0.975]) - gains.mean())
    far = labels + NEXT > FAR * labels
    return law, Outlook(labels, NEXT, now, then, now - then, float(low), float(high), bool(low > 0), far)
