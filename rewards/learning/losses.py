"""Losses: pure functions of tensors."""

from __future__ import annotations

import torch
from torch import Tensor


def masked_mse(predicted: Tensor, target: Tensor) -> Tensor:
    """Mean squared error over the labels that exist. HelpSteer2 (arXiv 2406.08673) section 3.

    predicted, target: [batch, attributes]; NaN in the target is a missing label and has no gradient. Without any
    label the loss is 0.
    """
    known = torch.isfinite(target)
    error = torch.where(known, predicted - torch.nan_to_num(target), 0.0)  # [batch, attributes]
    return error.square().sum() / known.sum().clamp(min=1)
