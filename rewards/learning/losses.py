"""Losses as pure functions of tensors. They return one value per label or pair, so that the caller chooses the divisor.

`chosen` and `rejected` [pairs] are rewards; `strength` [pairs] is how much better people found the chosen response,
1 to 3. logsigmoid is used instead of log(sigmoid), which in fp32 is log(0) for differences below about -100.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid


def squared_errors(predicted: Tensor, target: Tensor) -> Tensor:
    """[rows, attributes]: squared errors, HelpSteer2 (arXiv 2406.08673) section 3.

    NaN in the target is a missing label: its error is 0 and it has no gradient.
    """
    known = torch.isfinite(target)
    return torch.where(known, predicted - torch.nan_to_num(target), 0.0).square()


def bradley_terry(chosen: Tensor, rejected: Tensor, strength: Tensor) -> Tensor:
    """[pairs]: -log s(r_c - r_r). HelpSteer2-Preference (arXiv 2410.01257) section 3, eq. 1."""
    return -logsigmoid(chosen - rejected)


def margin_bradley_terry(chosen: Tensor, rejected: Tensor, strength: Tensor) -> Tensor:
    """[pairs]: -log s(r_c - r_r - m): the rewards must differ by the strength m. Ibid., eq. 2."""
    return -logsigmoid(chosen - rejected - strength)


def scaled_bradley_terry(chosen: Tensor, rejected: Tensor, strength: Tensor) -> Tensor:
    """[pairs]: -m log s(r_c - r_r): a pair of strength m counts m times. Ibid., eq. 3."""
    return -strength * logsigmoid(chosen - rejected)
