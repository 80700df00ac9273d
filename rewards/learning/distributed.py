"""Lets several processes work on one run: torchrun starts them, and all plan the same batches.

In a single process every function does nothing or returns its argument. With several, each must call them all in the
same order: a collective call that one process skips blocks the others for ever.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor

from rewards.learning import atomic_directories
from rewards.learning.refusals import Refused

Value = TypeVar("Value")


def join(device: torch.device) -> torch.device:
    """Joins the other processes, if torchrun started any, and returns this process's device."""
    if not dist.is_torchelastic_launched() or dist.is_initialized():
        return device
    if device.type == "cuda":
        # Before NCCL starts: without it every process would take the first GPU.
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    return device


def leave() -> None:
    """Waits for the other processes, which may still be writing, and leaves the group."""
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


def size() -> int:
    """Returns the number of processes, 1 when this one is alone."""
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    """Returns this process's number, from 0."""
    return dist.get_rank() if dist.is_initialized() else 0


def is_first() -> bool:
    """Returns whether this process is the one that writes files."""
    return rank() == 0


def wait() -> None:
    """Waits until all processes have come here, so that what the first one wrote exists for all."""
    if size() > 1:
        dist.barrier()


def by_first(work: Callable[[], None]) -> None:
    """Does the work in the first process only; what that refuses, every process raises.

    Without this the others would wait for a process that has given up.
    """
    from_first(work)


def from_first(compute: Callable[[], Value], *, sent: Callable[[Value], Value] = lambda value: value) -> Value:
    """Returns in every process what the first one computes; what that refuses, every process raises.

    The others get what `sent` makes of it.
    """
    own: list[Value] = []
    outcome: tuple[Value | None, Refused | None] = None, None
    if is_first():
        try:
            own.append(compute())
            outcome = sent(own[0]) if size() > 1 else None, None
        except Refused as refusal:
            outcome = None, refusal
    value, refused = agreed(outcome)
    if refused:
        raise refused
    return own[0] if own else cast("Value", value)


@contextmanager
def whole_directory(place: Path) -> Iterator[Path]:
    """Yields a directory to fill, as `atomic_directories.whole_directory` does: the first process writes into it.

    All wait until it has its name.
    """
    if is_first():
        with atomic_directories.whole_directory(place) as directory:
            yield directory
    else:
        yield place
    wait()


def share(values: Sequence[Value]) -> list[tuple[Value, bool]]:
    """Returns this process's part of the values, each with whether it counts; every process gets equally many.

    A sharded forward pass is a collective call, so a process without a value of its own in the last round repeats the
    last value, which does not count.
    """
    if size() == 1:
        return [(value, True) for value in values]
    rounds = -(-len(values) // size())
    indices = (rank() + turn * size() for turn in range(rounds))
    return [(values[min(i, len(values) - 1)], i < len(values)) for i in indices]


def agreed(value: Value) -> Value:
    """Returns the first process's value in every process: the others' may differ from it by rounding."""
    if size() == 1:
        return value
    values = [value]
    dist.broadcast_object_list(values, src=0)
    return values[0]


def gathered(values: dict[int, Any]) -> dict[int, Any]:
    """Returns the union of all processes' values; a key that several hold takes the value of the last of them."""
    if size() == 1:
        return values
    parts: list[Any] = [None] * size()
    dist.all_gather_object(parts, values)
    return {key: value for part in parts for key, value in part.items()}


def collected(value: Value) -> list[Value]:
    """Returns every process's value in the first process, and none in the others."""
    if size() == 1:
        return [value]
    values: list[Any] | None = [None] * size() if is_first() else None
    dist.gather_object(value, values, dst=0)
    return values or []


def summed(value: Tensor) -> Tensor:
    """Returns the sum of the value over all processes; changes it in place."""
    if size() > 1:
        dist.all_reduce(value)
    return value
