"""Intervals of 95 % around kappa, by a bootstrap over tasks: tasks are drawn, as responses to one prompt go together.

Of few tasks each is drawn by itself. Of many, buckets are: groups of tasks at random (counting.bucket_of), of which
each is as good a sample of the whole as another, so that their spread tells what drawing the tasks one by one would
(a bootstrap over random groups). With 200 buckets the width of an interval is right to about 5 %.
"""

import numpy as np
from numpy.typing import NDArray

from annotator.agreement.pair_counts import SELECTIONS, Columns, Counts, Keys
from annotator.agreement.two_rater_kappa import NO_VARIANCE

Floats = NDArray[np.float64]
DRAWS = 1_000
SEED = 2406
ENDS = (0.025, 0.975)


def intervals(groups: Counts, columns: Columns) -> Floats:
    """Both ends, [selection, column, end], of the counts of tasks or buckets; NaN with fewer than two of them."""
    sums = _sums(groups, columns)
    bounds = np.full((*sums.shape[1:3], len(ENDS)), np.nan)
    drawn = _kappas(np.tensordot(_draws(len(sums)), sums, 1)) if len(sums) > 1 else np.zeros((0, *sums.shape[1:3]))
    enough = (sums[..., 0] > 0).sum(0) > 1
    for place in np.argwhere(enough):
        kappas = drawn[:, *place]
        kappas = kappas[np.isfinite(kappas)]
        if len(kappas) > DRAWS / 2:
            bounds[*place] = np.quantile(kappas, ENDS)
    return bounds


def _sums(groups: Counts, columns: Columns) -> Floats:
    """[group, selection, column, sum of]: samples, and over them mean squared difference, square, rating."""
    keys = Keys.read(groups.key, columns)
    owners, place = np.unique(groups.owner, return_inverse=True)
    shape = (len(owners), len(SELECTIONS), len(columns))
    where = np.ravel_multi_index((place, keys.selection, keys.column), shape) if len(owners) else place
    samples = 2 * groups.count / (keys.ratings * (keys.ratings - 1))
    of = (1, (keys.low - keys.high) ** 2, (keys.low**2 + keys.high**2) / 2, (keys.low + keys.high) / 2)
    size = int(np.prod(shape))
    return np.stack([np.bincount(where, samples * weights, size).reshape(shape) for weights in of], -1)


def _draws(groups: int) -> Floats:
    """How often each group is drawn, [draw, group]: the same at every call."""
    drawn = np.random.default_rng(SEED).integers(0, groups, (DRAWS, groups)) + groups * np.arange(DRAWS)[:, None]
    return np.bincount(drawn.ravel(), minlength=DRAWS * groups).reshape(DRAWS, groups).astype(np.float64)


def _kappas(sums: Floats) -> Floats:
    """The closed form, from the sums of each draw."""
    samples = np.where(sums[..., 0] > 0, sums[..., 0], np.nan)
    difference, square, rating = (sums[..., place] / samples for place in (1, 2, 3))
    variance = square - rating**2
    return np.asarray(1 - difference / (2 * np.where(variance > NO_VARIANCE, variance, np.nan)))
