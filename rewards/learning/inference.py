"""Computes scores and features of items in their order, independent of which items share a batch.

Batches go by length, and several responses share one pass over their prompt.
"""

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
"""The most tokens in one pass on a CPU: activations of more do not stay in its caches, so each token takes longer."""

WIDTH_STEP = 16
"""On a CPU a row is padded to a multiple of so many tokens, whatever is beside it. Sums over more or fewer padded
places round differently: in fp32 by 1e-7 of a feature, but in bf16 by 0.3 %."""


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
    """[items, features]: the features that the head reads.

    Only before the network is sharded: FSDP gathers the weights in the network's own forward pass.
    """
    return _gather(loaded, encoded, batch_tokens, loaded.network.features)


@torch.no_grad()
def _gather(
    loaded: Loaded, encoded: Sequence[Encoded], batch_tokens: int, compute: Callable[[Input], Tensor]
) -> Floats:
    # Equal tokens are read once: in another batch a rounding error would break their tie.
    places = {sample: place for place, sample in enumerate(dict.fromkeys(encoded))}
    samples = list(places)
    by_row: dict[int, Floats] = {}
    on_cpu = loaded.device.type == "cpu"
    budget, step = (min(batch_tokens, CPU_TOKENS), WIDTH_STEP) if on_cpu else (batch_tokens, 1)
    with loaded.rounding():  # around all batches, as it keeps the rounded weights until it ends
        for groups, _ in distributed.share(loaded.batches(samples, budget, step=step)):
            values = compute(loaded.arranged([[samples[i] for i in group] for group in groups], step=step))
            rows = [i for group in groups for i in group]
            # float64 from here on: sums over many rows must not add rounding errors of their own.
            by_row |= dict(zip(rows, values.double().cpu().numpy(), strict=True))
    distributed.settle(loaded.network)
    by_row = distributed.gathered(by_row)
    return np.stack([by_row[places[sample]] for sample in encoded])
