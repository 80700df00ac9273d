"""Plans which rows go through the network together: batches within a token budget, and the seeded order of an epoch.

A unit is what must not be parted: a response, or all responses of a task. Padded rows are sorted by length, since
padding is the cost of a step (random batches of 8 waste half of their token slots); packed rows have no padding, so
they come in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Batch = list[int]


@dataclass(frozen=True)
class Sizes:
    """The size of every unit, each a list [units].

    `lengths` are the tokens that a unit takes in a packed row, or the width of its widest padded row; `rows` counts
    its rows and `real` its tokens without padding.
    """

    lengths: Sequence[int]
    rows: Sequence[int]
    real: Sequence[int]
    padded: bool

    def batches(self, units: Sequence[int], budget: int) -> list[Batch]:
        """Returns the units in batches of at most `budget` tokens, padding included; a larger unit stands alone."""
        # The unit's number breaks ties, so that every process plans the same batches.
        order = sorted(units, key=lambda unit: (self.lengths[unit], unit)) if self.padded else units
        batches: list[Batch] = []
        rows = tokens = 0
        for unit in order:
            rows, tokens = rows + self.rows[unit], tokens + self.lengths[unit]
            # Sorted by length, the newest unit is the widest: all rows of the batch are padded to it.
            if batches and (rows * self.lengths[unit] if self.padded else tokens) <= budget:
                batches[-1].append(unit)
            else:
                batches.append([unit])
                rows, tokens = self.rows[unit], self.lengths[unit]
        return batches

    def epoch(self, *, batch_tokens: int, batch_size: int, seed: int, epoch: int) -> list[Batch]:
        """Returns the optimizer steps of an epoch: `batch_size` units each or, where that is 0, `batch_tokens` tokens.

        The order depends on seed and epoch alone, so a resumed run needs no random state.
        """
        random = np.random.default_rng([seed, epoch])
        if batch_size:
            shuffled = random.permutation(len(self.lengths)).tolist()
            return [shuffled[i : i + batch_size] for i in range(0, len(shuffled), batch_size)]
        if self.padded:
            steps = self.batches(range(len(self.lengths)), batch_tokens)
            return [steps[i] for i in random.permutation(len(steps))]
        return self.batches(random.permutation(len(self.lengths)).tolist(), batch_tokens)

    def tokens(self, units: Sequence[int]) -> int:
        """Returns the token slots that the units take in one batch, padding included."""
        if self.padded:
            return sum(self.rows[unit] for unit in units) * max(self.lengths[unit] for unit in units)
        return sum(self.lengths[unit] for unit in units)

    def padding_share(self, batches: Sequence[Sequence[int]]) -> float:
        """Returns the share of all token slots that holds padding, from 0 to 1."""
        slots = sum(map(self.tokens, batches))
        used = sum(self.real[unit] for batch in batches for unit in batch)
        return 1 - used / slots if slots else 0.0
