"""Several processes, one run: torchrun starts them, FSDP2 shards the weights, every process plans the same batches.

Alone, each function is what it would be without the others. Every process must call them, in the same order.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from rewards.learning.depth import layers_of

Value = TypeVar("Value")


def join(device: torch.device) -> torch.device:
    """Meets the other processes, if torchrun started any; returns the device that is ours."""
    if not dist.is_torchelastic_launched() or dist.is_initialized():
        return device
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    return device


def leave() -> None:
    """Waits for the others, who may still write, and parts from them."""
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


def size() -> int:
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


def is_first() -> bool:
    """Whether this process is the one that writes files."""
    return rank() == 0


def wait() -> None:
    """Until all have come here: what the first one wrote is there."""
    if size() > 1:
        dist.barrier()


def share(values: Sequence[Value]) -> list[tuple[Value, bool]]:
    """Our part of the values, as many for each process; those that only keep step with the others do not count."""
    if size() == 1:
        return [(value, True) for value in values]
    rounds = -(-len(values) // size())
    ours = (rank() + turn * size() for turn in range(rounds))
    return [(values[min(i, len(values) - 1)], i < len(values)) for i in ours]


def agreed(value: Value) -> Value:
    """What the first process found: the others' may differ from it by rounding."""
    if size() == 1:
        return value
    said = [value]
    dist.broadcast_object_list(said, src=0)
    return said[0]


def gathered(values: dict[int, Any]) -> dict[int, Any]:
    """What all processes found, together."""
    if size() == 1:
        return values
    parts: list[Any] = [None] * size()
    dist.all_gather_object(parts, values)
    return {key: value for part in parts for key, value in part.items()}


def summed(value: Tensor) -> Tensor:
    if size() > 1:
        dist.all_reduce(value)
    return value


def shard(network: nn.Module) -> None:
    """Each layer by itself, then the rest, in fp32: autocast computes a step in bf16, and an evaluation stays exact.

    Gathering in bf16 would halve the traffic, and make a model's dev loss one number here and another one when stored.
    """
    if size() == 1:
        return
    for layer in layers_of(network):
        fully_shard(layer)
    fully_shard(network)


def reduce_gradients(network: nn.Module, *, now: bool) -> None:
    """Between the parts of a step gradients stay where they are; at its end they meet."""
    if isinstance(network, FSDPModule):
        network.set_requires_gradient_sync(now)


def settle(network: nn.Module) -> None:
    """After a pass without a backward one the weights lie about in one piece; shards again."""
    for module in network.modules():
        if isinstance(module, FSDPModule):
            module.reshard()


def whole(value: Tensor) -> Tensor:
    """A sharded tensor in one piece, in every process."""
    return value.full_tensor() if isinstance(value, DTensor) else value


def like(value: Tensor, pattern: Tensor) -> Tensor:
    """A tensor in one piece, sharded as the pattern is."""
    if isinstance(pattern, DTensor):
        return distribute_tensor(value.to(pattern.device), pattern.device_mesh, pattern.placements)
    return value
