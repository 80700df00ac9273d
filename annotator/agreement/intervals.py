"""Computes 95 % intervals around kappa by a bootstrap over tasks, since ratings of one task depend on each other.

Few tasks are drawn one by one. Many are drawn in buckets, which are random groups of tasks (pair_counts.bucket_of):
each is as good a sample of the whole as another, so the spread between them shows what drawing single tasks would (a
bootstrap over random groups). With 200 buckets the width of an interval is right to about 5 %.
"""

import numpy as np
from numpy.typing import NDArray

from annotator.agreement.pair_counts import SELECTIONS, Columns, Counts, Keys
from annotator.agreement.two_rater_kappa import NO_VARIANCE

Floats = NDArray[np.float64]
DRAWS = 1_000
SEED = 2406
ENDS = (0.025, 0.975)
FEWEST_TASKS = 5
"""The fewest tasks that have an interval: of two or three, it would reach from the lowest task to the highest."""


def intervals(groups: Counts, columns: Columns) -> Floats:
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


def _sums(groups: Counts, columns: Columns) -> Floats:
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
