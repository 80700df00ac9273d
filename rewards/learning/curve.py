"""Computes the learning curve: what labels have brought so far, and what the next ones would bring. NumPy only.

The ridge on frozen features is refitted on nested subsets of the train prompts and judged on the prompts of a fold that
is held back, fold by fold. Every refit chooses its depth and its penalties anew: with those of the whole data a small
subset looks worse than it is, or better. The rows by which promotion decides are not touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewards.learning.cross_fit import examples_of, middles, only_compared
from rewards.learning.data import Features, Floats, Ints
from rewards.learning.paired_gain import t_quantile
from rewards.learning.pairs import in_order
from rewards.learning.ridge import fit_ridge, scaling_of

FOLDS = 10
SIZES = 7
FEWEST_PROMPTS = 30
SMALLEST = 8
"""Prompts of the smallest subset."""
NEXT = 1_000
FAR = 3.0
"""Beyond this many times the present labels an extrapolation is a guess."""
MOST_DIRECTIONS = 400
"""Features are first projected onto this many principal directions, so that a refit takes milliseconds."""
EXPONENTS = np.linspace(0.05, 0.4, 8)
"""How fast errors fall with more data: measured ones lie between 0.07 and 0.35 (Hestness et al. 2017, section 5)."""
DOUBLINGS = 4
"""The outlook follows this many of the largest sizes: what the first few labels brought says little about the next."""
SAMPLES = 2_000
OWN_SCATTER = 0.5
"""The share of the last doubling's standard error by which one drawing of labels scatters about what to expect.

Set by `make bench-evidence`, where labels are doubled and the gain is looked up.
"""
RMSE, WRONG = "rmse", "wrong"


@dataclass(frozen=True)
class CurveRows:
    """The responses: targets [n, k] with NaN for a missing label, and prompts [n].

    `features` are [n, d] for each depth of the backbone that may be read. `weights` [k] make the scalar reward. Each of
    `pairs` holds two rows, the first of which people find better.
    """

    features: Sequence[Features]
    targets: Floats
    prompts: Sequence[str]
    weights: Sequence[float]
    pairs: Sequence[tuple[int, int]] | Ints = ()


@dataclass(frozen=True)
class Point:
    """The curve at one size of the training data, counted in labels and in prompts.

    Labels are rated responses, or preferences where nothing is rated. The error and the accuracy are means over the
    folds, with 95 % intervals; accuracy is None where no pairs were held back.
    """

    labels: int
    prompts: int
    error: float
    low: float
    high: float
    accuracy: float | None
    accuracy_low: float | None
    accuracy_high: float | None


@dataclass(frozen=True)
class PowerLaw:
    """The error as a function of the labels: floor + slope * labels ** -exponent."""

    floor: float
    slope: float
    exponent: float

    def at(self, labels: float) -> float:
        """Returns the error with so many labels, which is never below 0."""
        return max(0.0, float(self.floor + self.slope * labels**-self.exponent))


@dataclass(frozen=True)
class Outlook:
    """The fall of the error that `more` labels would bring, with the bounds of a 95 % interval.

    `probability` is that of any fall at all. `evidence` says that the whole interval is above 0, `far` that the
    extrapolation leaves what was measured far behind.
    """

    labels: int
    more: int
    now: float
    then: float
    gain: float
    low: float
    high: float
    probability: float
    evidence: bool
    far: bool


@dataclass(frozen=True)
class _Material:
    """What the heads are fitted on: [n, d] for each depth, targets [n, k], the prompt of each row, and pairs of rows.

    Where responses were only compared, the rows are their differences.
    """

    features: Sequence[Floats]
    targets: Floats
    groups: Ints
    weights: Floats
    pairs: Ints
    compared: bool


@dataclass(frozen=True)
class FoldErrors:
    """The results on one fold, for each size [sizes]: labels, mean squared error or share of wrong pairs, accuracy.

    The accuracy is NaN where no pair was held back.
    """

    labels: Floats
    errors: Floats
    accuracy: Floats


def learning_curve(
    rows: CurveRows, *, alphas: Sequence[float], blocks: Sequence[int], seed: int, more: int = NEXT
) -> dict[str, Any] | None:
    """Returns the curve, its power law and the outlook as JSON; None where there are too few prompts for a curve.

    alphas: the penalties to choose from; blocks: the columns of each block of the features. `measure` says what the
    error is: the RMSE over all labels, or the share of pairs in the wrong order where nothing is rated.
    """
    pairs = np.asarray(rows.pairs, dtype=np.int64).reshape(-1, 2)
    depths = [examples_of(depth, rows.targets, rows.prompts, pairs, rows.weights) for depth in rows.features]
    groups = np.unique(np.asarray(depths[0].prompts), return_inverse=True)[1]
    features = [_directions(scaling_of(depth.features, blocks).apply(depth.features), seed) for depth in depths]
    compared = only_compared(rows.targets, pairs)
    material = _Material(
        features, depths[0].targets, groups, np.asarray(rows.weights, dtype=np.float64), pairs, compared
    )
    prompts = int(material.groups.max()) + 1 if len(material.groups) else 0
    if prompts < FEWEST_PROMPTS or not np.isfinite(material.targets).any(axis=0).all():
        return None
    # Each size is half of the next, up to the most that a fold leaves.
    sizes = [prompts - -(-prompts // FOLDS)]
    while len(sizes) < SIZES and sizes[0] // 2 >= SMALLEST:
        sizes.insert(0, sizes[0] // 2)
    random = np.random.default_rng(seed)
    fold = random.permutation(prompts) % FOLDS
    folds = [
        # Half of the penalties are enough here: the others lie between them.
        _fold(material, np.flatnonzero(fold == number), sizes, alphas[::2], random)
        for number in range(FOLDS)
    ]
    measure = WRONG if material.compared else RMSE
    labelled = len(material.targets) // 2 if material.compared else np.isfinite(material.targets).any(axis=1).sum()
    return curve_of(folds, sizes, measure=measure, now=int(labelled), more=more, seed=seed)


def curve_of(
    folds: Sequence[FoldErrors], sizes: Sequence[int], *, measure: str, now: int, more: int = NEXT, seed: int
) -> dict[str, Any]:
    """Returns a curve as JSON, with its power law and what `more` labels than `now` would bring.

    sizes: the prompts of each size; measure: RMSE or WRONG.
    """
    labels = np.stack([one.labels for one in folds]).mean(axis=0)
    errors, accuracies = np.stack([one.errors for one in folds]), np.stack([one.accuracy for one in folds])
    law, outlook = outlook_of(labels, errors, now=now, more=more, measure=measure, seed=seed)
    points = []
    for i, size in enumerate(sizes):
        error = _as_shown(np.array(_interval(errors[:, i])), measure).tolist()
        # A fold without a pair says nothing about accuracy.
        judged = accuracies[np.isfinite(accuracies[:, i]), i]
        accuracy = np.clip(_interval(judged), 0, 1).tolist() if len(judged) > 1 else (None, None, None)
        points.append(asdict(Point(round(labels[i]), size, *error, *accuracy)))
    return {"measure": measure, "points": points, "law": asdict(law), "outlook": asdict(outlook), "draws": len(folds)}


def _directions(features: Floats, seed: int) -> Floats:
    """[n, min(d, MOST_DIRECTIONS)]: features [n, d] unchanged where d is small enough, else projected.

    The projection is seeded and randomised: Halko, Martinsson and Tropp 2011, algorithm 4.4 with one power iteration.
    """
    if features.shape[1] <= MOST_DIRECTIONS:
        return features
    test = np.random.default_rng(seed).normal(size=(features.shape[1], MOST_DIRECTIONS))
    basis, _ = np.linalg.qr(features.T @ (features @ (features.T @ (features @ test))))
    return np.asarray(features @ basis, dtype=np.float64)


# One fold --------------------------------------------------------------------------------------------------


def _fold(
    material: _Material, held: Ints, sizes: Sequence[int], alphas: Sequence[float], random: np.random.Generator
) -> FoldErrors:
    prompts = int(material.groups.max()) + 1
    others = random.permutation(np.setdiff1d(np.arange(prompts), held))
    rank = np.full(prompts, prompts)
    rank[others] = np.arange(len(others))
    # [n]: the place of the row's prompt in this order. Every size takes the first prompts, so the subsets are nested:
    # a curve over separate draws of each size would jump by the luck of the draw.
    place = rank[material.groups]
    held_back = np.isin(material.groups, held)
    labels, errors, accuracies = [], [], []
    for size in sizes:
        fit = place < size
        predicted = _predicted(material, fit, alphas)
        answered = int(np.isfinite(material.targets[fit]).any(axis=1).sum())
        labels.append(answered // 2 if material.compared else answered)
        error, accuracy = _judged(material, predicted, held_back)
        errors.append(error)
        accuracies.append(accuracy)
    return FoldErrors(np.array(labels, dtype=np.float64), np.array(errors), np.array(accuracies))


def _predicted(material: _Material, fit: NDArray[np.bool_], alphas: Sequence[float]) -> Floats:
    """[n, k]: the predictions for all rows of the ridge that is chosen and fitted on the rows of `fit` [n]."""
    # Attributes without a label in the fit are predicted by the middle of the labels that there are.
    predicted = np.tile(middles(material.targets), (len(material.targets), 1))
    columns = np.flatnonzero(np.isfinite(material.targets[fit]).any(axis=0))
    prompts = material.groups[fit].astype(str).tolist()
    targets = material.targets[fit][:, columns]
    ridges = [
        (depth, fit_ridge(depth[fit], targets, prompts, alphas=alphas, blocks=[depth.shape[1]]))
        for depth in material.features
    ]
    depth, ridge = min(ridges, key=lambda pair: float(np.mean(np.square(pair[1].held_out_rmse))))
    predicted[:, columns] = depth @ ridge.weight.T + ridge.bias
    return predicted


def _judged(material: _Material, predicted: Floats, held: NDArray[np.bool_]) -> tuple[float, float]:
    """Returns the mean squared error, or the share of wrong pairs, and the accuracy, over the held rows [n]."""
    if material.compared:
        ahead = (predicted[held] * material.targets[held]) @ np.abs(material.weights)
        right = float(in_order(ahead).mean())
        return 1 - right, right
    error = float(np.nanmean((predicted[held] - material.targets[held]) ** 2))
    # Both rows of a pair have the same prompt, so one of them tells where both are.
    pairs = material.pairs[held[material.pairs[:, 0]]]
    rewards = predicted @ material.weights
    ahead = rewards[pairs[:, 0]] - rewards[pairs[:, 1]]
    return error, float(in_order(ahead).mean()) if len(pairs) else float("nan")


# All folds -------------------------------------------------------------------------------------------------


def _shared(folds: int) -> float:
    """Returns by how much the variance over folds is multiplied to become the variance of their mean.

    Folds share most of their data, so they scatter less than new data would. The corrected variance multiplies by
    1/J + n2/n1 instead of 1/J, for J folds with n1 rows in the fit and n2 held back: Nadeau and Bengio 2003,
    equation 9.
    """
    return 1 / folds + 1 / (folds - 1)


def _interval(values: Floats) -> tuple[float, float, float]:
    """Returns the mean over the folds [folds] and the bounds of its 95 % interval."""
    mean = float(values.mean())
    reach = t_quantile(0.975, len(values) - 1) * float(values.std(ddof=1)) * np.sqrt(_shared(len(values)))
    return mean, mean - reach, mean + reach


def _as_shown(errors: Floats, measure: str) -> Floats:
    """[...]: the RMSE of mean squared errors [...], and shares of wrong pairs between 0 and 1."""
    return np.sqrt(np.maximum(errors, 0)) if measure == RMSE else np.clip(errors, 0, 1)


def fit_power_law(labels: Floats, errors: Floats, exponent: float) -> PowerLaw:
    """Returns the power law of this exponent that fits labels [sizes] and errors [sizes] best by least squares."""
    falling = labels**-exponent
    centred = falling - falling.mean()
    slope = float(centred @ (errors - errors.mean()) / (centred @ centred)) if len(labels) > 1 else 0.0
    return PowerLaw(float(errors.mean() - slope * falling.mean()), slope, exponent)


def outlook_of(
    labels: Floats, errors: Floats, *, now: int, more: int, measure: str, seed: int
) -> tuple[PowerLaw, Outlook]:
    """Extrapolates errors [folds, sizes] at labels [sizes] from `now` labels to `more` of them.

    The interval holds three kinds of doubt. The curve's own: curves are drawn from what the folds scatter, with
    Student's t as there are few folds. The law's: of each curve one exponent is drawn, because so few sizes cannot tell
    them apart. And the luck of the labels that will come.
    """
    labels, errors = labels[-DOUBLINGS:], errors[:, -DOUBLINGS:]
    folds, sizes = errors.shape
    random = np.random.default_rng([seed, folds])
    root = np.linalg.cholesky(np.atleast_2d(np.cov(errors.T)) * _shared(folds) + 1e-12 * np.eye(sizes))
    stretch = np.sqrt((folds - 1) / random.chisquare(folds - 1, size=(SAMPLES, 1)))
    means = errors.mean(axis=0)
    curves = _as_shown(means + random.normal(size=(SAMPLES, sizes)) @ root.T * stretch, measure)
    drawn = random.choice(EXPONENTS, size=SAMPLES)
    laws = [fit_power_law(labels, curve, exponent) for curve, exponent in zip(curves, drawn.tolist(), strict=True)]
    gains = np.array([law.at(now) - law.at(now + more) for law in laws])
    last_doubling = curves[:, -min(2, sizes)] - curves[:, -1]
    gains += random.normal(size=SAMPLES) * OWN_SCATTER * last_doubling.std()
    law = fit_power_law(labels, _as_shown(means, measure), float(np.median(EXPONENTS)))
    present, then = law.at(now), law.at(now + more)
    low, high = np.quantile(gains, [0.025, 0.975]).tolist()
    far = now + more > FAR * now
    probability = float(np.mean(gains > 0))
    return law, Outlook(now, more, present, then, present - then, low, high, probability, low > 0, far)
