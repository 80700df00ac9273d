"""Numbers out of a network: batches by length, fp32, in the order of the items, whoever their neighbours are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from rewards.learning.batches import token_budget_batches
from rewards.learning.data import Floats
from rewards.learning.encoding import Encoded
from rewards.learning.model import Batch, Loaded
from rewards.learning.refusals import Refused


class NoSuchDevice(Refused):
    """The device asked for is not on this machine."""


def choose_device(name: str) -> torch.device:
    if name == "cuda" and not torch.cuda.is_available():
        raise NoSuchDevice("device is cuda, but torch finds none here")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def predict(loaded: Loaded, encoded: Sequence[Encoded], *, batch_tokens: int) -> Floats:
    """[items, attributes]: unclamped scores."""
    return _gather(loaded, encoded, batch_tokens, loaded.network)


def frozen_features(loaded: Loaded, encoded: Sequence[Encoded], *, batch_tokens: int) -> Floats:
    """[items, features]: what the head would read."""
    return _gather(loaded, encoded, batch_tokens, loaded.network.features)


@torch.inference_mode()
def _gather(
    loaded: Loaded, encoded: Sequence[Encoded], batch_tokens: int, compute: Callable[[Batch], Tensor]
) -> Floats:
    rows: list[Floats] = [np.empty(0)] * len(encoded)
    for batch in token_budget_batches([len(e.ids) for e in encoded], batch_tokens):
        values = compute(loaded.collate([encoded[i] for i in batch])).double().cpu().numpy()
        for index, row in zip(batch, values, strict=True):
            rows[index] = row
    return np.stack(rows)
