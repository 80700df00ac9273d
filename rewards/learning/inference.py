"""Computes scores and features of items in their order, independent of which items share a batch.

It runs in fp32, with batches by length and one pass over a prompt that several responses share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from rewards.learning import distributed, sharding
from rewards.learning.data import Floats
from rewards.learning.encoding import Encoded
from rewards.learning.model import Input, Loaded
from rewards.learning.refusals import Refused

CPU_TOKENS = 2_048
"""The most tokens in one pass on a CPU: activations of more do not stay in its caches, so each token takes longer."""


class NoSuchDevice(Refused):
    """The configured device does not exist on this machine."""


def choose_device(name: str) -> torch.device:
    """Returns the device of a configuration's `device`; raises NoSuchDevice where cuda is asked for and absent."""
    if name == "cuda" and not torch.cuda.is_available():
        raise NoSuchDevice("device is cuda, but torch finds none here")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def predict(loaded: Loaded, encoded: Sequence[Encoded], *, batch_tokens: int) -> Floats:
    """[items, attributes]: unclamped scores, computed in passes of at most `batch_tokens` tokens."""
    return _gather(loaded, encoded, batch_tokens, loaded.network)


def frozen_features(loaded: Loaded, encoded: Sequence[Encoded], *, batch_tokens: int) -> Floats:
    """[items, features]: the features that the head reads."""
    return _gather(loaded, encoded, batch_tokens, loaded.network.features)


@torch.no_grad()
def _gather(
    loaded: Loaded, encoded: Sequence[Encoded], batch_tokens: int, compute: Callable[[Input], Tensor]
) -> Floats:
    # Equal tokens are read once: in another batch a rounding error would break their tie.
    places = {sample: place for place, sample in enumerate(dict.fromkeys(encoded))}
    samples = list(places)
    by_row: dict[int, Floats] = {}
    budget = min(batch_tokens, CPU_TOKENS) if loaded.device.type == "cpu" else batch_tokens
    for groups, _ in distributed.share(loaded.batches(samples, budget)):
        values = compute(loaded.arranged([[samples[i] for i in group] for group in groups]))
        rows = [i for group in groups for i in group]
        # float64 from here on: sums over many rows must not add rounding errors of their own.
        by_row |= dict(zip(rows, values.double().cpu().numpy(), strict=True))
    sharding.settle(loaded.network)
    by_row = distributed.gathered(by_row)
    return np.stack([by_row[places[sample]] for sample in encoded])
