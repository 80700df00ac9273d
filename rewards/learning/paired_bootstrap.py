"""The paired bootstrap over prompts by which promotion decides. NumPy only, as the deciding process has no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000


@dataclass(frozen=True)
class Gain:
    """The fall of the loss per label from champion to candidate, with the bounds of a 95 % interval.

    `prompts` is the number of prompts that were resampled.
    """

    mean: float
    low: float
    high: float
    prompts: int

    def detectable(self) -> float:
        """Returns the true gain for which the interval of so many prompts would lie above 0 in four cases of five.

        It is (z.975 + z.8) standard errors, where the error is taken from the width of this interval.
        """
        return (1.960 + 0.842) * (self.high - self.low) / (2 * 1.960)


def paired_bootstrap(
    champion: Sequence[float],
    candidate: Sequence[float],
    counts: Sequence[float],
    *,
    seed: int,
    resamples: int = RESAMPLES,
) -> Gain:
    """Returns the candidate's gain with a percentile interval over resampled prompts.

    champion, candidate [prompts]: the summed loss of each prompt under either model; counts [prompts]: the labels or
    pairs that it was summed over.

    Raises:
        ValueError: the lists differ in length, are empty, or hold a count that is not positive.
    """
    gains = np.asarray(champion, dtype=np.float64) - np.asarray(candidate, dtype=np.float64)  # [prompts]
    labels = np.asarray(counts, dtype=np.float64)
    if gains.shape != labels.shape or gains.size == 0 or labels.min() <= 0:
        raise ValueError("a paired bootstrap needs both sums and a positive count for each of one prompt or more")
    # One draw serves both models: what makes a prompt hard for either cancels in the difference.
    draws = np.random.default_rng(seed).integers(0, gains.size, size=(resamples, gains.size))
    # A ratio of sums, not a mean of the prompts' means: every label weighs the same.
    resampled: NDArray[np.float64] = gains[draws].sum(axis=1) / labels[draws].sum(axis=1)
    low, high = np.quantile(resampled, [0.025, 0.975])
    return Gain(float(gains.sum() / labels.sum()), float(low), float(high), int(gains.size))
