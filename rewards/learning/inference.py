"""Numbers out of a network, in the order of the items, whoever their neighbours are: fp32, batches by length, one pass
over a prompt that several responses share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from rewards.learning import distributed
from rewards.learning.data import Floats
from rewards.learning.encoding import Encoded
from rewards.learning.model import Input, Loaded
from rewards.learning.refusals import Refused

CPU_TOKENS = 2_048
"""In a pass of a CPU, at most: what more tokens leave behind does not stay in its caches, and each takes longer."""


class NoSuchDevice(Refused):
    """The device asked for is not on this machine."""


def choose_device(name: str) -> torch.device:
    if name == "cuda" and not torch.cuda.is_available():
        raise NoSuchDevice("device is cuda, but torch finds none here")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def predict(loaded: Loaded, encoded: Sequence[Encoded], *, batch_tokens: int) -> Floats:
    """[items, attributes]: unclamped scores, in passes of at most so many tokens."""
    return _gather(loaded, encoded, batch_tokens, loaded.network)


def frozen_features(loaded: Loaded, encoded: Sequence[Encoded], *, batch_tokens: int) -> Floats:
    """[items, features]: what the head would read. Before the network is sharded only."""
    return _gather(loaded, encoded, batch_tokens, loaded.network.features)


@torch.no_grad()
def _gather(
    loaded: Loaded, encoded: Sequence[Encoded], batch_tokens: int, compute: Callable[[Input], Tensor]
) -> Floats:
    by_row: dict[int, Floats] = {}
    budget = min(batch_tokens, CPU_TOKENS) if loaded.device.type == "cpu" else batch_tokens
    for groups, _ in distributed.share(loaded.batches(encoded, budget)):
        values = compute(loaded.arranged([[encoded[i] for i in group] for group in groups]))
        rows = [i for group in groups for i in group]
        by_row |= dict(zip(rows, values.double().cpu().numpy(), strict=True))
    distributed.settle(loaded.network)
    by_row = distributed.gathered(by_row)
    return np.stack([by_row[i] for i in range(len(encoded))])
