"""Padding is the cost of a step: items sorted by length into batches of one token budget, in a seeded order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def token_budget_batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Indices sorted by length into batches of at most `budget` padded tokens; a longer item stands alone."""
    batches: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        if batches and (len(batches[-1]) + 1) * lengths[index] <= budget:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches


def shuffled_batches(lengths: Sequence[int], budget: int, *, seed: int, epoch: int) -> list[list[int]]:
    """The batches of one epoch, in an order that depends on seed and epoch alone: nothing to save for a resume."""
    batches = token_budget_batches(lengths, budget)
    order = np.random.default_rng([seed, epoch]).permutation(len(batches))
    return [batches[i] for i in order]


def padding_share(lengths: Sequence[int], batches: Sequence[Sequence[int]]) -> float:
    """The part of all token slots that holds padding."""
    slots = sum(len(batch) * max(lengths[i] for i in batch) for batch in batches)
    return 1 - sum(lengths[i] for batch in batches for i in batch) / slots if slots else 0.0
