"""Estimates rater effects on an ordinal scale: how far raters lean, how far they stretch the scale, how they scatter.

A rating is y = mu + b_r + a_r theta_i + e. Here theta_i is what the response i deserves, b_r how far the rater r leans,
a_r how much of a difference r makes (1 as usual, 0 for one score to all), and e ~ N(0, s_r^2) noise of a variance that
is r's own.
Leaning and scatter are the bias and variability of a rater in Patz, Junker, Johnson & Mariano, "The hierarchical rater
model", J. of Educational and Behavioral Statistics 27 (2002) 341; with a_r it is Joreskog's model of congeneric tests,
Psychometrika 36 (1971) 109. All have priors whose parameters are estimated too, so that few ratings say little.

The fit alternates: what each response deserves, given the raters; then the raters, each against what the *other* raters
of a response make likely. Plain expectation-maximisation takes a rater's own rating as evidence too; it can come to
trust a rater who gives every response the same score, and explain the others by that.

Why not the confusion matrices of Dawid & Skene, "Maximum likelihood estimation of observer error-rates using the EM
algorithm", Applied Statistics 28 (1979) 20: with five levels those are 20 numbers a rater and attribute, which tasks of
three ratings hardly bear, and they do not know that 3 is closer to 4 than 0 is. The library that is kept (crowd-kit)
brings pandas and transformers along. What is left out here: the scale ends at 0 and 4, which makes raters look closer
there than they are.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]

TOLERANCE = 1e-3
"""The fit has converged when no rater's leaning, stretch or scatter changes by this much in a step."""
MOST_STEPS = 100
PRIOR_RATINGS = 10.0
"""How many ratings the prior is worth that a rater's scatter and stretch are the usual ones."""
LEAST_VARIANCE = 1 / 12
"""The variance that rounding to whole levels alone causes: that of a uniform error of one level's width."""
LEAST_LEANING_VARIANCE = 0.01
MOST_STRETCH = 2.0
NOTHING = 1e-9
"""Stands in for a divisor where every response is rated alike."""


@dataclass(frozen=True)
class Effects:
    """Holds, by rater, leaning (levels), its standard error, stretch, scatter (a deviation in levels), and ratings.

    `reliability` is the share of a rater's variance that the responses cause: 0 if all of it is noise, 1 if none is. It
    is NaN if the rater's scores hardly vary, as so little variance says nothing. By rating, `likely` is the score that
    the other raters make likely, `distance` how far the rating lies from it, and `surprise` how far beyond the rater's
    own leaning and stretch; all are NaN if nobody else rated the response. `usual_scatter` is that of all ratings
    together.
    """

    leaning: Floats
    error: Floats
    stretch: Floats
    scatter: Floats
    reliability: Floats
    ratings: Ints
    likely: Floats
    distance: Floats
    surprise: Floats
    usual_scatter: float
    steps: int
    converged: bool


@dataclass(frozen=True)
class _Fit:
    """The parameters: leaning, stretch and variance by rater, the mean of all ratings, and two variances.

    `deserved` is the variance of what responses deserve, `leanings` that of the raters' leanings.
    """

    leaning: Floats
    stretch: Floats
    variance: Floats
    mean: float
    deserved: float
    leanings: float


@dataclass(frozen=True)
class _Shared:
    """The ratings of responses with two raters or more, in the order of the responses, and where each one begins."""

    item: Ints
    rater: Ints
    score: Floats
    begins: Ints
    ratings: Ints

    @classmethod
    def of(cls, items: Ints, raters: Ints, scores: Floats | Ints, count: int) -> "_Shared":
        begins = np.flatnonzero(np.diff(items, prepend=items[:1] - 1))
        number = np.repeat(np.arange(len(begins)), np.diff(begins, append=len(items)))
        return cls(number, raters, scores.astype(np.float64), begins, np.bincount(raters, minlength=count))

    def by_item(self, values: Floats) -> Floats:
        return np.add.reduceat(values, self.begins)

    def by_rater(self, values: Floats) -> Floats:
        return np.bincount(self.rater, values, len(self.ratings)).astype(np.float64)

    def mean(self, values: Floats) -> Floats:
        """Returns the mean of each rater's values, 0 for a rater without any."""
        return self.by_rater(values) / np.maximum(self.ratings, 1)


def rater_effects(items: Ints, raters: Ints, scores: Floats | Ints, *, count: int) -> Effects:
    """Fits the model to parallel arrays: the response, the rater (0 to count - 1) and the score of each rating.

    A response that only one rater has rated says nothing about raters and is left out. The same ratings in another
    order give the same result, except for rounding.
    """
    order = np.argsort(items, kind="stable")
    _, place, size = np.unique(items[order], return_inverse=True, return_counts=True)
    chosen = order[size[place] > 1]
    data = _Shared.of(items[chosen], raters[chosen], scores[chosen], count)
    distance, surprise = np.full((2, len(items)), np.nan)
    if not len(chosen):
        none = np.full(count, np.nan)
        return Effects(
            none, none, none, none, none, data.ratings, distance, distance, surprise, np.nan, 0, converged=True
        )
    fit, steps, converged = _fitted(data)
    distance[chosen], surprise[chosen], error = _against_the_others(data, fit)
    rated = data.ratings > 0
    own_variance = data.mean((data.score - data.mean(data.score)[data.rater]) ** 2)
    varied = rated & (own_variance >= LEAST_VARIANCE)
    caused = fit.stretch**2 * fit.deserved
    return Effects(
        leaning=np.where(rated, fit.leaning, np.nan),
        error=np.where(rated, error, np.nan),
        stretch=np.where(rated, fit.stretch, np.nan),
        scatter=np.where(rated, np.sqrt(fit.variance), np.nan),
        reliability=np.where(varied, caused / (caused + fit.variance), np.nan),
        ratings=data.ratings,
        likely=scores - distance,
        distance=distance,
        surprise=surprise,
        usual_scatter=float(np.sqrt(np.average(fit.variance, weights=data.ratings))),
        steps=steps,
        converged=converged,
    )


def _fitted(data: _Shared) -> tuple[_Fit, int, bool]:
    # Starts with half of the variance due to the responses and half to the raters' noise.
    half = max(float(data.score.var()) / 2, LEAST_VARIANCE)
    everybody = np.ones(len(data.ratings))
    fit = _Fit(0 * everybody, everybody, half * everybody, float(data.score.mean()), half, half)
    for step in range(1, MOST_STEPS + 1):
        before, fit = fit, _step(data, fit)
        moves = fit.leaning - before.leaning, fit.stretch - before.stretch, fit.variance**0.5 - before.variance**0.5
        if max(float(np.abs(move).max()) for move in moves) < TOLERANCE:
            return fit, step, True
    return fit, MOST_STEPS, False


def _step(data: _Shared, fit: _Fit) -> _Fit:
    """Fits the raters to what the others make likely, then how far responses differ, given the raters."""
    likely, doubt = _by_the_others(data, fit)
    weight = 1 / (fit.variance + fit.stretch**2 * data.mean(doubt))[data.rater]
    above = data.score - fit.mean
    precision = data.by_rater(weight) + 1 / fit.leanings
    leaning = data.by_rater(weight * (above - fit.stretch[data.rater] * likely)) / precision
    stretch = _stretch(data, weight, likely, above - leaning[data.rater])
    residual = above - leaning[data.rater] - stretch[data.rater] * likely
    # Part of each squared residual is doubt about what the response deserves, and none of the rater's noise.
    squares = data.by_rater(residual**2 - stretch[data.rater] ** 2 * doubt)
    usual = max(squares.sum() / data.ratings.sum(), LEAST_VARIANCE)
    variance = (squares + PRIOR_RATINGS * usual) / (data.ratings + PRIOR_RATINGS)
    rated = data.ratings > 0
    # The data show only differences between raters: what is added to every leaning and taken from the mean changes no
    # rating. So the median rater is the one who does not lean.
    leaning = leaning - np.median(leaning[rated])
    updated = replace(
        fit,
        leaning=leaning,
        stretch=stretch,
        variance=np.maximum(variance, LEAST_VARIANCE),
        leanings=max(float((leaning**2 + 1 / precision)[rated].mean()), LEAST_LEANING_VARIANCE),
    )
    corrected = data.score - leaning[data.rater]
    deserved = _in_common(data, corrected - corrected.mean(), stretch)
    return replace(updated, mean=float(corrected.mean()), deserved=deserved)


def _stretch(data: _Shared, weight: Floats, likely: Floats, above: Floats) -> Floats:
    """Returns the slopes of the raters' ratings on what is likely, shrunk towards 1 and with a mean of 1."""
    information, observed = weight * likely**2, data.by_rater(weight * likely * above)
    prior = max(PRIOR_RATINGS * information.mean(), NOTHING)
    # Not below 0: a rater who contradicts the others is noise, or their reversed ratings would be taken as evidence.
    slope = np.clip((observed + prior) / (data.by_rater(information) + prior), 0, MOST_STRETCH)
    # Only the product of stretch and what responses deserve shows in the data, so the mean stretch is set to 1.
    scaled: Floats = slope / max(float(np.average(slope, weights=data.ratings)), 0.1)
    return scaled


def _in_common(data: _Shared, deviation: Floats, stretch: Floats) -> float:
    """Returns the variance that any two ratings of one response have in common: how far responses differ."""
    stretched = stretch[data.rater]
    # (sum of x)^2 - sum of x^2 is the sum of the products of all pairs of different ratings of a response.
    in_common, most = ((data.by_item(values) ** 2 - data.by_item(values**2)).sum() for values in (deviation, stretched))
    return max(float(in_common / most), LEAST_VARIANCE) if most > 0 else LEAST_VARIANCE


def _by_the_others(data: _Shared, fit: _Fit) -> tuple[Floats, Floats]:
    """Returns, by rating, mean and variance of what the response deserves above the mean, given its other ratings."""
    # Each rating's own part is subtracted from the sums over its response: leaving one out without a loop.
    weight = (fit.stretch**2 / fit.variance)[data.rater]
    own = (fit.stretch / fit.variance)[data.rater] * (data.score - fit.mean - fit.leaning[data.rater])
    precision = (data.by_item(weight) + 1 / fit.deserved)[data.item] - weight
    return (data.by_item(own)[data.item] - own) / precision, 1 / precision


def _against_the_others(data: _Shared, fit: _Fit) -> tuple[Floats, Floats, Floats]:
    """Returns the distance and the surprise of each rating, and the standard error of each rater's leaning."""
    likely, doubt = _by_the_others(data, fit)
    above, stretch = data.score - fit.mean, fit.stretch[data.rater]
    information = data.by_rater(1 / (fit.variance[data.rater] + stretch**2 * doubt))
    surprise = above - fit.leaning[data.rater] - stretch * likely
    return above - likely, surprise, 1 / np.sqrt(information + 1 / fit.leanings)
