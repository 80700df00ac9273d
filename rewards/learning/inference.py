"""Computes scores and features of items in their order, independent of which items share a batch.

Batches go by length, and several responses share one pass over their prompt.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from torch import Tensor, nn

from rewards.learning import distributed, sharding
from rewards.learning.answers import Predicted, owns_tokens
from rewards.learning.data import Features, Floats
from rewards.learning.encoding import Encoded
from rewards.learning.model import Input, Loaded
from rewards.learning.progress import Count, Progress
from rewards.learning.refusals import Refused
from rewards.learning.token_rows import TokenRows, distinct

Value = TypeVar("Value")

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


def start(device: str, threads: int) -> torch.device:
    """Joins the other processes and returns this one's device, with so many CPU threads; 0: torch decides.

    Raises:
        NoSuchDevice: as `choose_device` does.
    """
    if threads:
        torch.set_num_threads(min(threads, os.cpu_count() or 1))
    return distributed.join(choose_device(device))


def versions() -> dict[str, str]:
    """Returns the versions of the libraries on which a run's numbers depend."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "numpy": np.__version__,
    }


def predict(
    loaded: Loaded, encoded: Sequence[Encoded], *, batch_tokens: int, progress: Progress | None = None
) -> Floats:
    """[items, attributes]: unclamped scores, computed in passes of at most `batch_tokens` tokens.

    The progress is told how many items are done.
    """
    return _gather(loaded, encoded, batch_tokens, loaded.network, progress)


def predict_all(
    loaded: Loaded, encoded: Sequence[Encoded], *, batch_tokens: int, progress: Progress | None = None
) -> Predicted:
    """Returns what `predict` does, and from the same passes the scores of the segments if there is a head for them."""
    if not loaded.scores_segments:
        return Predicted(predict(loaded, encoded, batch_tokens=batch_tokens, progress=progress))
    responses, segments = _gather_both(loaded, encoded, batch_tokens, loaded.network.both, progress)
    segments[~owns_tokens(encoded)] = np.nan
    return Predicted(responses, segments)


def stored_features(
    loaded: Loaded,
    encoded: Sequence[Encoded],
    *,
    batch_tokens: int,
    folder: Path,
    progress: Progress | None = None,
) -> Features:
    """[items, features]: what `frozen_features` returns, in float32 in a file of the folder that nobody else sees.

    Only the first process has them; the others get no rows. The file is gone when the array is.
    """
    samples, places = distinct(encoded)
    width = sum(loaded.network.blocks)
    rows_of: list[list[int]] = [[] for _ in samples]
    for row, place in enumerate(places):
        rows_of[place].append(row)
    stored = _on_disk(len(encoded), width, folder) if distributed.is_first() else np.empty((0, width), np.float32)
    count = Count("features", len(samples), progress)
    for rows, values in _passes(loaded, samples, batch_tokens, loaded.network.features, count):
        for numbers, features in distributed.collected((rows, as_array(values))):
            for number, value in zip(numbers, features, strict=True):
                stored[rows_of[number]] = value
    return stored


def stored_segment_features(
    loaded: Loaded,
    encoded: Sequence[Encoded],
    *,
    batch_tokens: int,
    folder: Path,
    progress: Progress | None = None,
) -> Features:
    """[segments, hidden]: the features of the items' segments, kept as `stored_features` keeps those of responses."""
    samples = TokenRows(item for item in encoded if item.segments)
    bounds = np.cumsum([0, *(len(item.segments) for item in samples)])
    stored = _on_disk(int(bounds[-1]), loaded.network.blocks[0], folder) if distributed.is_first() else None
    count = Count("features", len(samples), progress)
    for rows, (_, values) in _passes(loaded, samples, batch_tokens, loaded.network.both_features, count):
        for numbers, features in distributed.collected((rows, as_array(values))):
            for number, of_item in zip(numbers, _by_item(features, samples, numbers), strict=True):
                if stored is not None:
                    stored[bounds[number] : bounds[number + 1]] = of_item
    return np.empty((0, loaded.network.blocks[0]), np.float32) if stored is None else stored


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


def all_features(loaded: Loaded, encoded: Sequence[Encoded], *, batch_tokens: int) -> tuple[Floats, Floats | None]:
    """Returns what `frozen_features` does, and from the same passes the features [segments, hidden] of the segments.

    Those are None where there is no head for segments, and NaN for a segment that owns no token.
    """
    if not loaded.scores_segments:
        return frozen_features(loaded, encoded, batch_tokens=batch_tokens), None
    features, of_segments = _gather_both(loaded, encoded, batch_tokens, loaded.network.both_features)
    of_segments[~owns_tokens(encoded)] = np.nan
    return features, of_segments


def scores_of(loaded: Loaded, features: Floats, of_segments: Floats | None) -> Predicted:
    """Returns the scores that the heads of an unsharded network give to what `all_features` returns."""

    def scored(head: nn.Linear, values: Floats) -> Floats:
        scores: Floats = head(torch.from_numpy(values).float().to(loaded.device)).double().cpu().numpy()
        return scores

    head = loaded.network.segment_head
    segments = None if head is None or of_segments is None else scored(head, of_segments)
    return Predicted(scored(loaded.network.head, features), segments)


def _gather(
    loaded: Loaded,
    encoded: Sequence[Encoded],
    batch_tokens: int,
    compute: Callable[[Input], Tensor],
    progress: Progress | None = None,
) -> Floats:
    # Equal tokens are read once: in another batch a rounding error would break their tie.
    samples, places = distinct(encoded)
    by_row: dict[int, Floats] = {}
    for rows, values in _passes(loaded, samples, batch_tokens, compute, Count("predict", len(samples), progress)):
        # float64 from here on: sums over many rows must not add rounding errors of their own.
        by_row |= dict(zip(rows, as_array(values).astype(np.float64), strict=True))
    by_row = distributed.gathered(by_row)
    return np.stack([by_row[place] for place in places])


def _gather_both(
    loaded: Loaded,
    encoded: Sequence[Encoded],
    batch_tokens: int,
    compute: Callable[[Input], tuple[Tensor, Tensor]],
    progress: Progress | None = None,
) -> tuple[Floats, Floats]:
    samples, places = distinct(encoded)
    by_row: dict[int, tuple[Floats, Floats]] = {}
    count = Count("predict", len(samples), progress)
    for rows, (values, of_segments) in _passes(loaded, samples, batch_tokens, compute, count):
        segments = _by_item(as_array(of_segments).astype(np.float64), samples, rows)
        by_row |= dict(zip(rows, zip(as_array(values).astype(np.float64), segments, strict=True), strict=True))
    by_row = distributed.gathered(by_row)
    return np.stack([by_row[place][0] for place in places]), np.concatenate([by_row[place][1] for place in places])


def _by_item(values: NDArray[Any], samples: Sequence[Encoded], rows: Sequence[int]) -> list[NDArray[Any]]:
    """Returns values [segments, ...] of some items, item by item."""
    return np.split(values, np.cumsum([len(samples[row].segments) for row in rows])[:-1])


def as_array(values: Tensor) -> NDArray[np.float32]:
    """Returns the values in main memory, in float32."""
    array: NDArray[np.float32] = values.float().cpu().numpy()
    return array


@torch.no_grad()
def _passes(
    loaded: Loaded,
    samples: Sequence[Encoded],
    batch_tokens: int,
    compute: Callable[[Input], Value],
    count: Count | None = None,
) -> Iterator[tuple[list[int], Value]]:
    """Yields the results of this process's batches: the numbers of the samples, and what is computed of them.

    Every process yields equally often, and counts the samples of all.
    """
    on_cpu = loaded.device.type == "cpu"
    budget, step = (min(batch_tokens, CPU_TOKENS), WIDTH_STEP) if on_cpu else (batch_tokens, 1)
    with loaded.rounding():  # around all batches, as it keeps the rounded weights until it ends
        for groups, _ in distributed.share(loaded.batches(samples, budget, step=step)):
            values = compute(loaded.arranged([[samples[i] for i in group] for group in groups], step=step))
            rows = [i for group in groups for i in group]
            yield rows, values
            if count:
                count.add(len(rows) * distributed.size())
    sharding.settle(loaded.network)
