"""Rater effects on an ordinal scale: how far each rater leans, how far they stretch the scale, how much they scatter.

A rating is y = mu + b_r + a_r theta_i + e: what the response i deserves, how far the rater r leans, how much of a
difference r makes (1 as usual, 0 for one score to all), and noise of a variance that is r's own, e ~ N(0, s_r^2).
Leaning and scatter are the bias and variability of a rater in Patz, Junker, Johnson & Mariano, "The hierarchical rater
model", J. of Educational and Behavioral Statistics 27 (2002) 341; with a_r it is Joreskog's model of congeneric tests,
Psychometrika 36 (1971) 109. All have priors whose parameters are estimated too, so that few ratings say little.

Fitted by turns: what each response deserves, given the raters; then the raters, each against what the *other* raters of
a response make likely. Plain expectation-maximisation takes one's own rating as evidence too; it can come to trust
whoever gives every response one score, and explain the others by that.

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
"""No rater's leaning, stretch or scatter changes by more in a step once it has converged."""
MOST_STEPS = 100
PRIOR_RATINGS = 10.0
"""A rater's scatter and stretch start out as if so many ratings had shown the usual."""
LEAST_VARIANCE = 1 / 12
"""What rounding to whole levels alone causes."""
LEAST_LEANING_VARIANCE = 0.01
MOST_STRETCH = 2.0
NOTHING = 1e-9
"""Stands in for a divisor where every response is rated alike."""


@dataclass(frozen=True)
class Effects:
    """By rater: leaning in levels, with its standard error; stretch; scatter, a standard deviation in levels; ratings.

    `reliability` is the share of a rater's variance that the responses cause: 0 for noise, 1 for none; nan where the
    rater's scores hardly vary, as the little that they do says nothing. By rating:
    `distance` is how far it lies from what the other raters make likely, `surprise` how far beyond the rater's own
    leaning and stretch; both nan where nobody else rated. `usual_scatter` is that of all ratings together.
    """

    leaning: Floats
    error: Floats
    stretch: Floats
    scatter: Floats
    reliability: Floats
    ratings: Ints
    distance: Floats
    surprise: Floats
    usual_scatter: float
    steps: int
    converged: bool


@dataclass(frozen=True)
class _Fit:
    """By rater leaning, stretch, variance; the mean of ratings; the variances of what is deserved and of leanings."""

    leaning: Floats
    stretch: Floats
    variance: Floats
    mean: float
    deserved: float
    leanings: float


@dataclass(frozen=True)
class _Shared:
    """The ratings of responses that two raters or more have rated, in the responses' order; where each begins."""

    item: Ints
    rater: Ints
    score: Floats
    begins: Ints
    ratings: Ints

    def by_item(self, values: Floats) -> Floats:
        return np.add.reduceat(values, self.begins)

    def by_rater(self, values: Floats) -> Floats:
        return np.bincount(self.rater, values, len(self.ratings)).astype(np.float64)


def rater_effects(items: Ints, raters: Ints, scores: Floats | Ints, *, count: int) -> Effects:
    """Fits the model to parallel arrays: the response, the rater (0 to count - 1) and the score of each rating.

    A response that one rater alone has rated says nothing of raters, and is left out. The same ratings in another order
    give the same result, but for rounding.
    """
    order = np.argsort(items, kind="stable")
    _, place, size = np.unique(items[order], return_inverse=True, return_counts=True)
    chosen = order[size[place] > 1]
    data = _shared(items[chosen], raters[chosen], scores[chosen], count)
    distance, surprise = np.full((2, len(items)), np.nan)
    if not len(chosen):
        none = np.full(count, np.nan)
        return Effects(none, none, none, none, none, data.ratings, distance, surprise, np.nan, 0, converged=True)
    fit, steps, converged = _fitted(data)
    distance[chosen], surprise[chosen], error = _against_the_others(data, fit)
    rated = data.ratings > 0
    varied = rated & (_variance(data) >= LEAST_VARIANCE)
    caused = fit.stretch**2 * fit.deserved
    return Effects(
        leaning=np.where(rated, fit.leaning, np.nan),
        error=np.where(rated, error, np.nan),
        stretch=np.where(rated, fit.stretch, np.nan),
        scatter=np.where(rated, np.sqrt(fit.variance), np.nan),
        reliability=np.where(varied, caused / (caused + fit.variance), np.nan),
        ratings=data.ratings,
        distance=distance,
        surprise=surprise,
        usual_scatter=float(np.sqrt(np.average(fit.variance, weights=data.ratings))),
        steps=steps,
        converged=converged,
    )


def _shared(items: Ints, raters: Ints, scores: Floats | Ints, count: int) -> _Shared:
    begins = np.flatnonzero(np.diff(items, prepend=items[:1] - 1))
    number = np.repeat(np.arange(len(begins)), np.diff(begins, append=len(items)))
    return _Shared(number, raters, scores.astype(np.float64), begins, np.bincount(raters, minlength=count))


def _fitted(data: _Shared) -> tuple[_Fit, int, bool]:
    half = max(float(data.score.var()) / 2, LEAST_VARIANCE)
    everybody = np.ones(len(data.ratings))
    fit = _Fit(0 * everybody, everybody, half * everybody, float(data.score.mean()), half, half)
    for step in range(1, MOST_STEPS + 1):
        before, fit = fit, _step(data, fit)
        if _moved(before, fit) < TOLERANCE:
            return fit, step, True
    return fit, MOST_STEPS, False


def _moved(before: _Fit, fit: _Fit) -> float:
    moves = fit.leaning - before.leaning, fit.stretch - before.stretch, fit.variance**0.5 - before.variance**0.5
    return max(float(np.abs(move).max()) for move in moves)


def _step(data: _Shared, fit: _Fit) -> _Fit:
    """The raters against what the others make likely; then how far responses differ, given the raters."""
    likely, doubt = _by_the_others(data, fit)
    known = 1 / (fit.variance + fit.stretch**2 * _mean(data, doubt))[data.rater]
    above = data.score - fit.mean
    precision = data.by_rater(known) + 1 / fit.leanings
    leaning = data.by_rater(known * (above - fit.stretch[data.rater] * likely)) / precision
    stretch = _stretch(data, known, likely, above - leaning[data.rater])
    off = above - leaning[data.rater] - stretch[data.rater] * likely
    squares = data.by_rater(off**2 - stretch[data.rater] ** 2 * doubt)
    usual = max(squares.sum() / data.ratings.sum(), LEAST_VARIANCE)
    variance = (squares + PRIOR_RATINGS * usual) / (data.ratings + PRIOR_RATINGS)
    rated = data.ratings > 0
    # Only differences between raters show in the data: half of them lean down.
    leaning = leaning - np.median(leaning[rated])
    news = replace(
        fit,
        leaning=leaning,
        stretch=stretch,
        variance=np.maximum(variance, LEAST_VARIANCE),
        leanings=max(float((leaning**2 + 1 / precision)[rated].mean()), LEAST_LEANING_VARIANCE),
    )
    left = data.score - leaning[data.rater]
    return replace(news, mean=float(left.mean()), deserved=_in_common(data, left - left.mean(), stretch))


def _mean(data: _Shared, values: Floats) -> Floats:
    """The mean of each rater's values; 0 for a rater without any."""
    return data.by_rater(values) / np.maximum(data.ratings, 1)


def _variance(data: _Shared) -> Floats:
    """The variance of each rater's scores as they were given."""
    return _mean(data, (data.score - _mean(data, data.score)[data.rater]) ** 2)


def _stretch(data: _Shared, known: Floats, likely: Floats, above: Floats) -> Floats:
    """The slope of own ratings on what is likely, drawn to 1, which it is on average. Nobody is believed backwards."""
    information, seen = known * likely**2, data.by_rater(known * likely * above)
    prior = max(PRIOR_RATINGS * information.mean(), NOTHING)
    slope = np.clip((seen + prior) / (data.by_rater(information) + prior), 0, MOST_STRETCH)
    drawn: Floats = slope / max(float(np.average(slope, weights=data.ratings)), 0.1)
    return drawn


def _in_common(data: _Shared, off: Floats, stretch: Floats) -> float:
    """How far responses differ: the variance that any two ratings of one response have in common."""
    stretched = stretch[data.rater]
    in_common, most = ((data.by_item(values) ** 2 - data.by_item(values**2)).sum() for values in (off, stretched))
    return max(float(in_common / most), LEAST_VARIANCE) if most > 0 else LEAST_VARIANCE


def _by_the_others(data: _Shared, fit: _Fit) -> tuple[Floats, Floats]:
    """By rating: mean and variance of what the response deserves, above the mean, given its other ratings."""
    weight = (fit.stretch**2 / fit.variance)[data.rater]
    own = (fit.stretch / fit.variance)[data.rater] * (data.score - fit.mean - fit.leaning[data.rater])
    precision = (data.by_item(weight) + 1 / fit.deserved)[data.item] - weight
    return (data.by_item(own)[data.item] - own) / precision, 1 / precision


def _against_the_others(data: _Shared, fit: _Fit) -> tuple[Floats, Floats, Floats]:
    """Distance and surprise of each rating, and the standard error of each rater's leaning."""
    likely, doubt = _by_the_others(data, fit)
    above, stretch = data.score - fit.mean, fit.stretch[data.rater]
    information = data.by_rater(1 / (fit.variance[data.rater] + stretch**2 * doubt))
    surprise = above - fit.leaning[data.rater] - stretch * likely
    return above - likely, surprise, 1 / np.sqrt(information + 1 / fit.leanings)
