"""Losses as pure functions of tensors. They return one value per pair or token, so that the caller chooses the divisor.

The equations are numbered as in docs/aligning.md.

A log-ratio is log pi(token) - log pi_ref(token), summed over the tokens of a response or of a segment. Segments stand
in columns: of a chosen response the best one first, of a rejected response the worst one first. A weight of 0 stands
where a response has fewer segments than there are columns.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid


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
