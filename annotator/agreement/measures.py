"""Measures of agreement from tables of two ratings, [..., one, other]; what is undefined is NaN. Pure numpy."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from annotator.agreement.pair_counts import CELLS, SELECTIONS, SHARED, Columns, Counts, Ints, Keys
from annotator.agreement.two_rater_kappa import NO_VARIANCE

Floats = NDArray[np.float64]
STEPS = np.arange(CELLS, dtype=np.float64)
DIFFERENCE = STEPS[:, None] - STEPS


@dataclass(frozen=True)
class Tables:
    """The meetings in samples, in both orders, [selection, column, one, other]."""

    met: Floats
    """How many."""
    by_sample: Floats
    """Each sample weighs 1."""
    by_rating: Floats
    """Each rating weighs 1: Krippendorff's matrix of coincidences."""

    @classmethod
    def of(cls, counts: Counts, columns: Columns) -> "Tables":
        """Builds the tables from counts that have one owner."""
        keys = Keys.read(counts.key, columns)
        weights = (counts.count, counts.count / (keys.ratings * (keys.ratings - 1)), counts.count / (keys.ratings - 1))
        return cls(*(_in_both_orders(keys, weight, columns) for weight in weights))


def by_sample_and_owner(counts: Counts, columns: Columns) -> tuple[Ints, Floats]:
    """Owners, and their tables [owner, column, one, other] in both orders: of counts of one selection."""
    owners, place = np.unique(counts.owner, return_inverse=True)
    keys = Keys.read(counts.key, columns)
    weight = counts.count / (keys.ratings * (keys.ratings - 1))
    table = _table((place, keys.column, keys.low, keys.high), weight, (len(owners), len(columns), CELLS, CELLS))
    return owners, np.asarray(table + table.swapaxes(-1, -2))


def _in_both_orders(keys: Keys, weight: Floats | Ints, columns: Columns) -> Floats:
    shape = (len(SELECTIONS), len(columns), CELLS, CELLS)
    table = _table((keys.selection, keys.column, keys.low, keys.high), weight, shape)
    return np.asarray(table + table.swapaxes(-1, -2))


def _table(places: tuple[Ints, ...], weight: Floats | Ints, shape: tuple[int, ...]) -> Floats:
    """The sum of the weights at each place."""
    if not len(weight):
        return np.zeros(shape)
    flat = np.ravel_multi_index(places, shape)
    return np.bincount(flat, weight, int(np.prod(shape))).astype(np.float64).reshape(shape)


@dataclass(frozen=True)
class Meetings:
    """What raters, or pairs of raters, have in common: who, how many responses, tables [owner, column, own, other]."""

    owners: Ints
    shared: Ints
    tables: Floats

    @classmethod
    def of(cls, counts: Counts, columns: Columns) -> "Meetings":
        owners, place = np.unique(counts.owner, return_inverse=True)
        shared = np.bincount(place, np.where(counts.key == SHARED, counts.count, 0), len(owners)).astype(np.int64)
        said = counts.key != SHARED
        keys = Keys.read(counts.key[said], columns)
        shape = (len(owners), len(columns), CELLS, CELLS)
        places = (place[said], keys.column, keys.low, keys.high)
        return cls(owners, shared, _table(places, counts.count[said], shape))


def kappa(tables: Floats) -> Floats:
    """Quadratic-weighted Cohen's kappa: 1 - mean (a - b)^2 / mean over all a, all b of (a - b)^2.

    On a table of both orders this is the closed form 1 - mean (a - b)^2 / (2 Var).
    """
    one, other = _shares(tables.sum(-1)), _shares(tables.sum(-2))
    by_chance = _variance(one) + _variance(other) + (one @ STEPS - other @ STEPS) ** 2
    return 1 - _mean(tables, DIFFERENCE**2) / _unless_nothing(by_chance)


def exact(tables: Floats) -> Floats:
    """The share of meetings with the same rating."""
    return _mean(tables, DIFFERENCE == 0)


def within_one(tables: Floats) -> Floats:
    """The share of meetings at most one level apart."""
    return _mean(tables, np.abs(DIFFERENCE) <= 1)


def bias(tables: Floats) -> Floats:
    """The mean number of levels by which the first rates above the other."""
    return _mean(tables, DIFFERENCE)


def spearman(tables: Floats) -> Floats:
    """Spearman's rank correlation over the meetings, ties at their mean rank; of tables of both orders."""
    shares = _shares(tables.sum(-1))
    ranks = np.cumsum(shares, -1) - shares / 2
    ranks = ranks - (shares * ranks).sum(-1, keepdims=True)
    together = (_shares_of_all(tables) * ranks[..., :, None] * ranks[..., None, :]).sum((-1, -2))
    return np.asarray(together / _unless_nothing((shares * ranks**2).sum(-1)))


def alpha(coincidences: Floats, *, ordinal: bool) -> Floats:
    """Krippendorff's alpha: 1 - (n - 1) observed / expected disagreement, the distance interval or ordinal."""
    totals = coincidences.sum(-1)
    distance = _ordinal_distance(totals) if ordinal else DIFFERENCE**2
    observed = (coincidences * distance).sum((-1, -2))
    expected = (totals[..., :, None] * totals[..., None, :] * distance).sum((-1, -2))
    return np.asarray(1 - (totals.sum(-1) - 1) * observed / _unless_nothing(expected))


def _ordinal_distance(totals: Floats) -> Floats:
    """The square of how many ratings lie between two levels, each end counting half (Krippendorff 2011)."""
    middle = np.cumsum(totals, -1) - totals / 2
    return np.asarray((middle[..., :, None] - middle[..., None, :]) ** 2)


def known(value: float) -> float | None:
    """A measure, or None where it is undefined."""
    return None if np.isnan(value) else float(value)


def _shares(counts: Floats) -> Floats:
    total = counts.sum(-1, keepdims=True)
    return np.asarray(counts / np.where(total > 0, total, np.nan))


def _shares_of_all(tables: Floats) -> Floats:
    total = tables.sum((-1, -2), keepdims=True)
    return np.asarray(tables / np.where(total > 0, total, np.nan))


def _mean(tables: Floats, of: Floats | NDArray[np.bool_]) -> Floats:
    return np.asarray((_shares_of_all(tables) * of).sum((-1, -2)))


def _variance(shares: Floats) -> Floats:
    return np.asarray(shares @ STEPS**2 - (shares @ STEPS) ** 2)


def _unless_nothing(value: Floats) -> Floats:
    return np.where(value > NO_VARIANCE, value, np.nan)
