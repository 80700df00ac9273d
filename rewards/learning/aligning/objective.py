"""What a method lowers, and what is measured beside it: from the log-probabilities of tokens to losses of units.

Sums of a part of a step are divided by the counts of the whole step, so the gradient does not depend on how the step is
cut into parts, or over how many processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from rewards.learning.aligning.align_config import DPO, DPO_1D, IMITATING, AlignConfig
from rewards.learning.aligning.sides import Side, Unit


@dataclass(frozen=True)
class Compared:
    """The segments of pairs in columns: log-ratios, weights and which columns meet, each [pairs, segments]."""

    chosen: Tensor
    rejected: Tensor
    chosen_weights: Tensor
    rejected_weights: Tensor
    matched: Tensor


def trained_sides(unit: Unit, method: str) -> tuple[Side, ...]:
    """Returns the sides of a unit that go through the policy in training: of what only imitates, the chosen one."""
    return (unit.chosen,) if method in IMITATING else unit.sides


def divisor(units: Sequence[Unit], method: str) -> int:
    """Returns what the losses of the units are divided by: tokens for what imitates, else pairs."""
    return sum(len(unit.chosen.learnt) for unit in units) if method in IMITATING else len(units)


def total_loss(units: Sequence[Unit], log_probs: Tensor, reference: Tensor, config: AlignConfig) -> Tensor:
    """Returns the sum of the units' losses; log_probs and reference are [learnt tokens of the trained sides]."""
    if config.method in IMITATING:
        return negative_log_likelihood(log_probs).sum()
    pairs, beta = compared(units, log_probs - reference), config.beta
    if config.method == DPO:
        return dpo(pairs.chosen.sum(dim=1), pairs.rejected.sum(dim=1), beta=beta).sum()
    weights = (pairs.chosen_weights, pairs.rejected_weights)
    if config.method == DPO_1D:
        return dpo_1d(pairs.chosen, pairs.rejected, *weights, beta=beta).sum()
    return dpo_2d(pairs.chosen, pairs.rejected, *weights, pairs.matched, beta=beta).sum()


def compared(units: Sequence[Unit], ratios: Tensor) -> Compared:
    """Returns the segments of the units, which are pairs, in columns; ratios are [learnt tokens]."""
    sides = [side for unit in units for side in unit.sides]
    width = max(1, *(len(side.weights) for side in sides))
    places = [row * width + column for row, side in enumerate(sides) for column in side.columns]
    sums = segment_sums(ratios, torch.tensor(places, device=ratios.device), rows=len(sides), columns=width)
    weights = torch.tensor(
        [[*side.weights, *[0.0] * (width - len(side.weights))] for side in sides],
        dtype=ratios.dtype,
        device=ratios.device,
    )
    fewest = torch.tensor([[min(len(side.weights) for side in unit.sides)] for unit in units], device=ratios.device)
    matched = torch.arange(width, device=ratios.device)[None, :] < fewest
    return Compared(sums[::2], sums[1::2], weights[::2], weights[1::2], matched.to(ratios.dtype))


def response_sums(units: Sequence[Unit], ratios: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the chosen and the rejected responses' log-ratios, each [pairs]; ratios are [learnt tokens]."""
    sides = [side for unit in units for side in unit.sides]
    rows = [row for row, side in enumerate(sides) for _ in side.learnt]
    sums = segment_sums(ratios, torch.tensor(rows, device=ratios.device), rows=len(sides), columns=1)[:, 0]
    return sums[::2], sums[1::2]


# Losses ------------------------------------------------------------------------------------------------------


def negative_log_likelihood(log_probs: Tensor) -> Tensor:
    """[tokens]: -log pi(token) of log_probs [tokens]; eq. 1.

    SteerLM (arXiv 2310.05344) has the same loss, after a prompt that names the attributes' levels.
    """
    return -log_probs


def dpo(chosen: Tensor, rejected: Tensor, *, beta: float) -> Tensor:
    """[pairs]: -log s(b sum_w - b sum_l) of the responses' log-ratios [pairs]; eq. 2, DPO (arXiv 2305.18290) eq. 7."""
    return -logsigmoid(beta * (chosen - rejected))


def dpo_1d(
    chosen: Tensor, rejected: Tensor, chosen_weights: Tensor, rejected_weights: Tensor, *, beta: float
) -> Tensor:
    """[pairs]: -log s(b sum_k r_wk lr_wk - b sum_k r_lk lr_lk), DPO with a weight for each segment; eq. 3.

    Log-ratios and weights are [pairs, segments].
    """
    return dpo((chosen_weights * chosen).sum(dim=1), (rejected_weights * rejected).sum(dim=1), beta=beta)


def dpo_2d(
    chosen: Tensor,
    rejected: Tensor,
    chosen_weights: Tensor,
    rejected_weights: Tensor,
    matched: Tensor,
    *,
    beta: float,
) -> Tensor:
    """[pairs]: -sum_k log s(b r_wk lr_wk - b r_lk lr_lk), the N best segments with the N worst; eq. 4.

    Log-ratios and weights are [pairs, segments]. matched [pairs, segments] is 1 for the first N columns of a pair, N
    being the smaller number of segments of its responses. 2D-DPO (arXiv 2410.19720), its objective by segments.
    """
    margins = beta * (chosen_weights * chosen - rejected_weights * rejected)
    # Without the mask a column that nothing stands in would cost log 2.
    return -(logsigmoid(margins) * matched).sum(dim=1)


def segment_sums(values: Tensor, places: Tensor, *, rows: int, columns: int) -> Tensor:
    """[rows, columns]: the sums of values [tokens] whose place [tokens] is row * columns + column; -1 is nowhere."""
    somewhere = places >= 0
    sums = torch.zeros(rows * columns, dtype=values.dtype, device=values.device)
    return sums.index_add(0, places[somewhere], values[somewhere]).view(rows, columns)
