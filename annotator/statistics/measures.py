"""Computes measures of agreement from tables that count pairs of ratings, [..., one, other]. Pure numpy.

A measure that is undefined is NaN.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pvariance

import numpy as np
from numpy.typing import NDArray

from annotator.statistics.pair_counts import CELLS, SELECTIONS, SHARED, Counts, Ints, Keys, PairColumns

Floats = NDArray[np.float64]
STEPS = np.arange(CELLS, dtype=np.float64)
DIFFERENCE = STEPS[:, None] - STEPS


@dataclass(frozen=True)
class Tables:
    """The pairs of ratings within samples, in both orders, weighed in three ways: [selection, column, one, other]."""

    met: Floats
    """Every pair counts 1."""
    by_sample: Floats
    """The pairs of a sample add up to 1."""
    by_rating: Floats
    """The pairs of a rating add up to 1: Krippendorff's matrix of coincidences."""

    @classmethod
    def of(cls, counts: Counts, columns: PairColumns) -> "Tables":
        """Builds the tables from counts that have one owner."""
        keys = Keys.read(counts.key, columns)
        weights = (counts.count, counts.count / (keys.ratings * (keys.ratings - 1)), counts.count / (keys.ratings - 1))
        return cls(*(_in_both_orders(keys, weight, columns) for weight in weights))


def by_sample_and_owner(counts: Counts, columns: PairColumns) -> tuple[Ints, Floats]:
    """Returns the owners and their tables [owner, column, one, other], in both orders, from counts of one selection."""
    owners, place = np.unique(counts.owner, return_inverse=True)
    keys = Keys.read(counts.key, columns)
    weight = counts.count / (keys.ratings * (keys.ratings - 1))
    table = _table((place, keys.column, keys.low, keys.high), weight, (len(owners), len(columns), CELLS, CELLS))
    return owners, np.asarray(table + table.swapaxes(-1, -2))


def _in_both_orders(keys: Keys, weight: Floats | Ints, columns: PairColumns) -> Floats:
    shape = (len(SELECTIONS), len(columns), CELLS, CELLS)
    table = _table((keys.selection, keys.column, keys.low, keys.high), weight, shape)
    return np.asarray(table + table.swapaxes(-1, -2))


def _table(places: tuple[Ints, ...], weight: Floats | Ints, shape: tuple[int, ...]) -> Floats:
    """Returns an array of this shape that holds the sum of the weights at each place."""
    if not len(weight):
        return np.zeros(shape)
    flat = np.ravel_multi_index(places, shape)
    return np.bincount(flat, weight, int(np.prod(shape))).astype(np.float64).reshape(shape)


@dataclass(frozen=True)
class Meetings:
    """What raters, or pairs of raters, have in common: how many responses, and tables [owner, column, own, other]."""

    owners: Ints
    shared: Ints
    tables: Floats

    @classmethod
    def of(cls, counts: Counts, columns: PairColumns) -> "Meetings":
        owners, place = np.unique(counts.owner, return_inverse=True)
        shared = np.bincount(place, np.where(counts.key == SHARED, counts.count, 0), len(owners)).astype(np.int64)
        rated = counts.key != SHARED
        keys = Keys.read(counts.key[rated], columns)
        shape = (len(owners), len(columns), CELLS, CELLS)
        places = (place[rated], keys.column, keys.low, keys.high)
        return cls(owners, shared, _table(places, counts.count[rated], shape))


def kappa(tables: Floats) -> Floats:
    """Returns quadratic-weighted Cohen's kappa: 1 - mean (a - b)^2 / mean over all a, all b of (a - b)^2.

    For a table in both orders this is the closed form 1 - mean (a - b)^2 / (2 Var). NaN where all ratings are the same.
    """
    one, other = _shares(tables.sum(-1)), _shares(tables.sum(-2))
    # E (a - b)^2 of independent a and b is Var a + Var b + (E a - E b)^2: no sum over all pairs of levels is needed.
    by_chance = _variance(one) + _variance(other) + (one @ STEPS - other @ STEPS) ** 2
    return 1 - _mean(tables, DIFFERENCE**2) / _nan_for_zero(by_chance)


def nominal_kappa(tables: Floats) -> Floats:
    """Returns Cohen's kappa without weights, for which every two different ratings differ alike.

    NaN where all ratings are the same.
    """
    one, other = _shares(tables.sum(-1)), _shares(tables.sum(-2))
    by_chance = 1 - (one * other).sum(-1)
    return 1 - _mean(tables, DIFFERENCE != 0) / _nan_for_zero(by_chance)


def exact(tables: Floats) -> Floats:
    """Returns the share of pairs with the same rating."""
    return _mean(tables, DIFFERENCE == 0)


def within_one(tables: Floats) -> Floats:
    """Returns the share of pairs that are at most one level apart."""
    return _mean(tables, np.abs(DIFFERENCE) <= 1)


def bias(tables: Floats) -> Floats:
    """Returns the mean number of levels by which the first rating lies above the second."""
    return _mean(tables, DIFFERENCE)


def spearman(tables: Floats) -> Floats:
    """Returns Spearman's rank correlation over the pairs, with ties at their mean rank, of tables in both orders."""
    # Both margins of such a table are the same, so one set of ranks serves both ratings.
    shares = _shares(tables.sum(-1))
    ranks = np.cumsum(shares, -1) - shares / 2
    ranks = ranks - (shares * ranks).sum(-1, keepdims=True)
    together = (_shares_of_all(tables) * ranks[..., :, None] * ranks[..., None, :]).sum((-1, -2))
    return np.asarray(together / _nan_for_zero((shares * ranks**2).sum(-1)))


def alpha(coincidences: Floats, *, ordinal: bool) -> Floats:
    """Returns Krippendorff's alpha, 1 - (n - 1) observed / expected disagreement, from his matrix of coincidences.

    The distance between two levels is the square of their difference or, if ordinal, of the ranks between them.
    """
    totals = coincidences.sum(-1)
    distance: Floats | Ints = DIFFERENCE**2
    if ordinal:
        # The square of how many ratings lie between two levels, each end counted half (Krippendorff 2011).
        middle = np.cumsum(totals, -1) - totals / 2
        distance = (middle[..., :, None] - middle[..., None, :]) ** 2
    observed = (coincidences * distance).sum((-1, -2))
    expected = (totals[..., :, None] * totals[..., None, :] * distance).sum((-1, -2))
    return np.asarray(1 - (totals.sum(-1) - 1) * observed / _nan_for_zero(expected))


def known(value: float) -> float | None:
    """Returns the measure, or None if it is undefined."""
    return None if np.isnan(value) else float(value)


# Empty tables are divided by NaN instead of 0: the result is NaN either way, but numpy does not warn.
def _shares(counts: Floats) -> Floats:
    total = counts.sum(-1, keepdims=True)
    return np.asarray(counts / np.where(total > 0, total, np.nan))


def _shares_of_all(tables: Floats) -> Floats:
    total = tables.sum((-1, -2), keepdims=True)
    return np.asarray(tables / np.where(total > 0, total, np.nan))


def _mean(tables: Floats, values: Floats | NDArray[np.bool_]) -> Floats:
    return np.asarray((_shares_of_all(tables) * values).sum((-1, -2)))


def _variance(shares: Floats) -> Floats:
    return np.asarray(shares @ STEPS**2 - (shares @ STEPS) ** 2)


def _nan_for_zero(value: Floats) -> Floats:
    # Rounding leaves a variance of 0 slightly above it: kappa would be huge instead of undefined.
    return np.where(value > NO_VARIANCE, value, np.nan)


NO_VARIANCE = 1e-12
"""A variance of at most this is 0 apart from rounding: every rating is the same."""


def paired_kappa(pairs: Sequence[tuple[int, int]]) -> float | None:
    """Returns quadratic-weighted Cohen's kappa of two given raters, from (one, other) scores of the same samples.

    It is 1 - mean[(a - b)^2] / mean over all samples i, j of (a_i - b_j)^2, and None if both raters give the same
    score throughout.
    """
    if not pairs:
        return None
    ones, others = zip(*pairs, strict=True)
    by_chance = pvariance(ones) + pvariance(others) + (fmean(ones) - fmean(others)) ** 2
    return kappa_of_means(fmean((a - b) ** 2 for a, b in pairs), by_chance)


def kappa_of_means(squared_difference: float, by_chance: float) -> float | None:
    """Returns kappa from the mean squared difference that was observed and the one that chance alone would give."""
    return None if by_chance <= NO_VARIANCE else 1 - squared_difference / by_chance


@dataclass(frozen=True)
class AgainstExperts:
    """Kappa with the experts by attribute; None for an attribute to which the experts give the same score throughout.

    `identical` says that every score equals the experts'.
    """

    kappas: Mapping[str, float | None]
    identical: bool

    @property
    def mean(self) -> float | None:
        """The mean kappa over the attributes for which it is defined."""
        defined = [kappa for kappa in self.kappas.values() if kappa is not None]
        return fmean(defined) if defined else None


def against_experts(rated: Sequence[tuple[Mapping[str, int], Mapping[str, int]]]) -> AgainstExperts:
    """Compares somebody's scores with the experts', attribute by attribute, over the responses that both rated."""
    pairs: dict[str, list[tuple[int, int]]] = {}
    for mine, experts in rated:
        for key, score in experts.items():
            if key in mine:
                pairs.setdefault(key, []).append((mine[key], score))
    # Where the experts never vary, a single deviation makes kappa 0: it would measure the choice of gold tasks, not
    # the annotator.
    kappas = {key: paired_kappa(both) if len({b for _, b in both}) > 1 else None for key, both in pairs.items()}
    return AgainstExperts(kappas, identical=all(a == b for both in pairs.values() for a, b in both))


DRAWS = 1_000
SEED = 2406
ENDS = (0.025, 0.975)
FEWEST_TASKS = 5
"""The fewest tasks that have an interval: of two or three, it would reach from the lowest task to the highest."""


def intervals(groups: Counts, columns: PairColumns) -> Floats:
    """Returns both ends of the interval, [selection, column, end], from the counts of tasks or buckets.

    They are NaN where fewer than FEWEST_TASKS of these have a sample, or where the draws say nothing (`ends_of`).
    """
    sums = _sums(groups, columns)
    bounds = np.full((*sums.shape[1:3], len(ENDS)), np.nan)
    enough = (sums[..., 0] > 0).sum(0) >= FEWEST_TASKS
    if enough.any():
        drawn = _kappas(np.tensordot(draws(len(sums)), sums, 1))
        for place in np.argwhere(enough):
            bounds[*place] = ends_of(drawn[:, *place])
    return bounds


def ends_of(drawn: Floats) -> Floats:
    """Returns both ends of the interval of a measure, [end], from its values in the draws.

    They are NaN where it is undefined in half of the draws or more: the others are no fair sample of the draws. They
    are NaN as well where the draws give the same, as where nobody differs from anybody in any task: that does not mean
    that other tasks would give the same, and an interval without a width would claim it.
    """
    defined = drawn[np.isfinite(drawn)]
    ends = np.quantile(defined, ENDS) if len(defined) > DRAWS / 2 else np.full(len(ENDS), np.nan)
    return ends if np.ptp(ends) > NO_VARIANCE else np.full(len(ENDS), np.nan)


def _sums(groups: Counts, columns: PairColumns) -> Floats:
    """Returns the sums that kappa is made of, [group, selection, column, moment].

    The moments are the number of samples and, summed over these, the mean squared difference, square and rating.
    """
    keys = Keys.read(groups.key, columns)
    owners, place = np.unique(groups.owner, return_inverse=True)
    shape = (len(owners), len(SELECTIONS), len(columns))
    cells = np.ravel_multi_index((place, keys.selection, keys.column), shape) if len(owners) else place
    # A sample of n ratings has n (n - 1) / 2 pairs, which together weigh 1.
    samples = 2 * groups.count / (keys.ratings * (keys.ratings - 1))
    moments = (1, (keys.low - keys.high) ** 2, (keys.low**2 + keys.high**2) / 2, (keys.low + keys.high) / 2)
    size = int(np.prod(shape))
    return np.stack([np.bincount(cells, samples * moment, size).reshape(shape) for moment in moments], -1)


def draws(groups: int) -> Floats:
    """Returns how often each of so many groups is drawn, [draw, group]."""
    # The seed is fixed, so that a page that is loaded again shows the same interval. One bincount serves all draws:
    # each has its own range of numbers.
    drawn = np.random.default_rng(SEED).integers(0, groups, (DRAWS, groups)) + groups * np.arange(DRAWS)[:, None]
    return np.bincount(drawn.ravel(), minlength=DRAWS * groups).reshape(DRAWS, groups).astype(np.float64)


def _kappas(sums: Floats) -> Floats:
    """Returns kappa, [draw, selection, column], in the closed form of `measures.kappa`, from the sums of each draw."""
    # NaN instead of 0 below the line: the result is undefined, and numpy does not warn.
    samples = np.where(sums[..., 0] > 0, sums[..., 0], np.nan)
    difference, square, rating = (sums[..., place] / samples for place in (1, 2, 3))
    variance = square - rating**2
    return np.asarray(1 - difference / (2 * np.where(variance > NO_VARIANCE, variance, np.nan)))
