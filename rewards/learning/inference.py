"""Computes scores and features of items in their order, independent of which items share a batch.

Batches go by length, and several responses share one pass over their prompt.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rewards.learning import distributed, sharding
from rewards.learning.data import Features, Floats
from rewards.learning.encoding import Encoded
from rewards.learning.model import Input, Loaded
from rewards.learning.refusals import Refused
from rewards.learning.token_rows import distinct

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


def stored_features(loaded: Loaded, encoded: Sequence[Encoded], *, batch_tokens: int, folder: Path) -> Features:
    """[items, features]: what `frozen_features` returns, in float32 in a file of the folder that nobody else sees.

    Only the first process has them; the others get no rows. The file is gone when the array is.
    """
    samples, places = distinct(encoded)
    width = sum(loaded.network.blocks)
    rows_of: list[list[int]] = [[] for _ in samples]
    for row, place in enumerate(places):
        rows_of[place].append(row)
    stored = _on_disk(len(encoded), width, folder) if distributed.is_first() else np.empty((0, width), np.float32)
    for batch in _passes(loaded, samples, batch_tokens, loaded.network.features):
        for rows, values in distributed.collected(batch):
            for number, value in zip(rows, values, strict=True):
                stored[rows_of[number]] = value
    return stored


def _on_disk(rows: int, width: int, folder: Path) -> Features:
    # Without a name the file goes with its last user, also if that is killed.
    with tempfile.TemporaryFile(dir=folder) as file:
        size = rows * width * np.dtype(np.float32).itemsize
        if sys.platform == "linux":
            # On a full disk this raises an error; writing to the mapped memory would kill the process instead.
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)
        return np.memmap(file, dtype=np.float32, mode="r+", shape=(rows, width))


def frozen_features(loaded: Loaded, encoded: Sequence[Encoded], *, batch_tokens: int) -> Floats:
    """[items, features]: the features that the head reads."""
    return _gather(loaded, encoded, batch_tokens, loaded.network.features)


def _gather(
    loaded: Loaded, encoded: Sequence[Encoded], batch_tokens: int, compute: Callable[[Input], Tensor]
) -> Floats:
    # Equal tokens are read once: in another batch a rounding error would break their tie.
    samples, places = distinct(encoded)
    by_row: dict[int, Floats] = {}
    for rows, values in _passes(loaded, samples, batch_tokens, compute):
        # float64 from here on: sums over many rows must not add rounding errors of their own.
        by_row |= dict(zip(rows, values.astype(np.float64), strict=True))
    by_row = distributed.gathered(by_row)
    return np.stack([by_row[place] for place in places])


@torch.no_grad()
def _passes(
    loaded: Loaded, samples: Sequence[Encoded], batch_tokens: int, compute: Callable[[Input], Tensor]
) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
    """Yields the results of this process's batches: the numbers of the samples, and [samples, values].

    Every process yields equally often.
    """
    on_cpu = loaded.device.type == "cpu"
    budget, step = (min(batch_tokens, CPU_TOKENS), WIDTH_STEP) if on_cpu else (batch_tokens, 1)
    with loaded.rounding():  # around all batches, as it keeps the rounded weights until it ends
        for groups, _ in distributed.share(loaded.batches(samples, budget, step=step)):
            values = compute(loaded.arranged([[samples[i] for i in group] for group in groups], step=step))
            yield [i for group in groups for i in group], values.float().cpu().numpy()
    sharding.settle(loaded.network)
