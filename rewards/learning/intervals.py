"""Computes 95 % intervals by a seeded bootstrap over prompts.

Prompts are resampled rather than rows, because the rows of one prompt are alike: to draw them independently would make
the intervals too narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from rewards.learning.data import Floats

RESAMPLES = 1000
SEED = 0
Interval = list[float]
Statistics = Callable[[Floats], Mapping[str, float | None]]


def by_prompt(prompts: Sequence[str], statistics: Statistics, *, seed: int = SEED) -> dict[str, Interval | None]:
    """Returns the interval of each statistic; None where too few draws define it, and nothing for a single prompt.

    prompts [rows]: the prompt of each row. statistics: a function from the rows' weights [rows], which say how often
    each row was drawn, to named values.
    """
    names, rows = np.unique(np.asarray(prompts), return_inverse=True)
    if len(names) < 2:
        return {}
    dice = np.random.default_rng(seed)
    drawn: dict[str, list[float]] = {}
    for _ in range(RESAMPLES):
        times = np.bincount(dice.integers(0, len(names), len(names)), minlength=len(names))
        for name, value in statistics(times[rows].astype(np.float64)).items():
            drawn.setdefault(name, []).append(np.nan if value is None else value)
    return {name: bounds(np.asarray(values)) for name, values in drawn.items()}


def of_share(values: Floats, prompts: Sequence[str]) -> dict[str, Interval | None]:
    """Returns the interval of the mean of values [rows] that lie between 0 and 1, as "accuracy"; as `by_prompt` does.

    Where all are 0, or all are 1, every draw is the same, which does not mean that nothing else can come. The interval
    is then that of Clopper and Pearson (1934) for so many prompts.
    """
    intervals = by_prompt(prompts, lambda weights: {"accuracy": float((values * weights).sum() / weights.sum())})
    if intervals and len(extremes := set(values.tolist())) == 1 and extremes <= {0.0, 1.0}:
        reach = 0.025 ** (1 / len(set(prompts)))
        intervals["accuracy"] = [reach, 1.0] if 1.0 in extremes else [0.0, 1 - reach]
    return intervals


def drawn_means(values: Floats, *, seed: int = SEED) -> Floats:
    """[resamples]: means of values drawn with replacement; NaN for a single value, which says nothing about spread."""
    if len(values) < 2:
        return np.full(RESAMPLES, np.nan)
    dice = np.random.default_rng(seed)
    return np.array([values[dice.integers(0, len(values), len(values))].mean() for _ in range(RESAMPLES)])


def bounds(drawn: Floats) -> Interval | None:
    """Returns the middle 95 % of the drawn values; None where more than one draw in twenty was undefined."""
    defined = drawn[np.isfinite(drawn)]
    if len(defined) < 0.95 * len(drawn) or not len(defined):
        return None
    return [float(bound) for bound in np.quantile(defined, [0.025, 0.975])]
