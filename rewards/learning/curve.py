"""Computes the learning curve: what labels have brought so far, and what the next ones would bring. NumPy only.

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
"""Beyond this many times the present labels an extrapolation is a guess."""
MOST_DIRECTIONS = 400
"""Features are first projected onto this many principal directions, so that a refit takes milliseconds."""
EXPONENTS = np.linspace(0.1, 1.5, 29)
RESAMPLES = 400


@dataclass(frozen=True)
class Rows:
    """The labelled responses: features [n, d], targets [n, k] with NaN for a missing label, and prompts [n].

    `weights` [k] make the scalar reward. Each of `pairs` holds two rows, the first of which people find better.
    """

    features: Floats
    targets: Floats
    prompts: Sequence[str]
    weights: Sequence[float]
    pairs: Sequence[tuple[int, int]] | Ints = ()


@dataclass(frozen=True)
class Point:
    """The curve at one size of the training data, counted in labelled responses and in prompts.

    RMSE and accuracy are means over the draws, with 95 % intervals; accuracy is None where no pairs were held back.
    """

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
    """The RMSE as a function of the labels: floor + slope * labels ** -exponent."""

    floor: float
    slope: float
    exponent: float

    def at(self, labels: float) -> float:
        """Returns the RMSE with so many labels."""
        return float(self.floor + self.slope * labels**-self.exponent)


@dataclass(frozen=True)
class Outlook:
    """The fall of the RMSE that `more` labels would bring, with the bounds of a 95 % interval.

    `evidence` says that the whole interval is above 0, `far` that the extrapolation leaves what was measured far
    behind.
    """

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
    """The results of one split and order of the prompts: labels, RMSE and accuracy for each size [sizes]."""

    labels: Floats
    rmse: Floats
    accuracy: Floats


def learning_curve(rows: Rows, *, alphas: Sequence[float], blocks: Sequence[int], seed: int) -> dict[str, Any] | None:
    """Returns the curve, its power law and the outlook as JSON; None where there are too few prompts for a curve.

    alphas [k]: the ridge's penalty per attribute, as chosen on all rows; the best one hardly depends on their number.
    """
    names, groups = np.unique(np.asarray(rows.prompts), return_inverse=True)
    if len(names) < FEWEST_PROMPTS or not np.isfinite(rows.targets).any(axis=0).all():
        return None
    directions = _directions(scaling_of(rows.features, blocks).apply(rows.features), seed)
    most = len(names) - round(HELD_BACK * len(names))
    # Even steps of a logarithm, as a power law is a straight line there; rounding may make two sizes equal.
    sizes = sorted({round(size) for size in np.geomspace(min(SMALLEST, most), most, SIZES)})
    draws = [
        _draw(directions, rows, groups, np.asarray(alphas), sizes, np.random.default_rng([seed, number]))
        for number in range(DRAWS)
    ]
    law, outlook = _outlook(draws, labels=int(np.isfinite(rows.targets).any(axis=1).sum()), seed=seed)
    points = [asdict(point) for point in _points(draws, sizes)]
    return {"points": points, "law": asdict(law), "outlook": asdict(outlook), "draws": DRAWS}


def _directions(features: Floats, seed: int) -> Floats:
    """[n, min(d, MOST_DIRECTIONS)]: features [n, d] unchanged where d is small enough, else projected.

    The projection is seeded and randomised: Halko, Martinsson and Tropp 2011, algorithm 4.4 with one power iteration.
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
    # [n]: the place of the row's prompt in this order. Every size takes the first prompts, so the subsets are nested:
    # a curve over separate draws of each size would jump by the luck of the draw.
    place = rank[groups]
    held_out = place >= sizes[-1]
    # Both rows of a pair have the same prompt, so one of them tells where both are.
    pairs = np.array([pair for pair in rows.pairs if held_out[pair[0]]], dtype=np.int64).reshape(-1, 2)
    labels, errors, accuracies = [], [], []
    for size in sizes:
        fit = place < size
        predicted = refitted(features, rows.targets, fit, alphas)
        labels.append(np.isfinite(rows.targets[fit]).any(axis=1).sum())
        errors.append(np.sqrt(np.nanmean((predicted[held_out] - rows.targets[held_out]) ** 2)))
        rewards = predicted @ np.asarray(rows.weights)
        right = rewards[pairs[:, 0]] > rewards[pairs[:, 1]]
        accuracies.append(float(np.mean(right)) if len(pairs) else float("nan"))
    return _Draw(np.array(labels, dtype=np.float64), np.array(errors), np.array(accuracies))


def refitted(features: Floats, targets: Floats, fit: NDArray[np.bool_], alphas: Floats) -> Floats:
    """[n, k]: the predictions for all rows of ridges fitted on the rows of `fit` [n].

    features [n, d], targets [n, k] with NaN for a missing label, alphas [k]. Attributes that are labelled in the same
    rows share one decomposition.
    """
    predicted = np.empty(targets.shape)
    known = np.isfinite(targets) & fit[:, None]
    for columns in labelled_alike(known):
        labelled = known[:, columns[0]]
        if not labelled.any():
            # No row of the fit has a label of these attributes: predict the middle of the scale 0..4.
            predicted[:, columns] = 2.0
            continue
        weight, bias = solve_ridge(features[labelled], targets[labelled][:, columns], alphas[columns])
        predicted[:, columns] = features @ weight.T + bias
    return predicted


# All draws -------------------------------------------------------------------------------------------------


def _spread(values: Floats) -> Floats:
    """[sizes]: the standard errors of the means over the draws of values [draws, sizes].

    Draws share their data, so they scatter less than new data would. The corrected variance multiplies their sample
    variance by 1/J + n2/n1 instead of 1/J, for J draws with n1 rows in the fit and n2 held back: Nadeau and Bengio
    2003, equation 9.
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
    """Fits the power law to labels [sizes] and errors [sizes] by least squares over a grid of exponents.

    The floor is not below 0; the slope is, where errors rise with the labels.
    """
    # For a fixed exponent the law is linear in floor and slope, so each has a closed form: no iteration can diverge.
    falling = labels ** -EXPONENTS[:, None]  # [exponents, sizes]
    centred = falling - falling.mean(axis=1, keepdims=True)
    slopes = centred @ (errors - errors.mean()) / (centred**2).sum(axis=1)
    floors = errors.mean() - slopes * falling.mean(axis=1)
    # An RMSE cannot fall below 0: where the best floor would, the slope is fitted again without a floor.
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
    # A bootstrap over draws gives the variance with 1/J only, and draws share their data: the root brings it to
    # 1/J + n2/n1, as in _spread.
    wider = np.sqrt(1 + len(draws) * HELD_BACK / (1 - HELD_BACK))
    low, high = now - then + wider * (np.quantile(gains, [0.025, 0.975]) - gains.mean())
    far = labels + NEXT > FAR * labels
    return law, Outlook(labels, NEXT, now, then, now - then, float(low), float(high), bool(low > 0), far)
