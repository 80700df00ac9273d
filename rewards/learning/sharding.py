"""Shards a network's weights over the processes with FSDP2, and gathers what must be whole.

In a single process every function does nothing or returns its argument. With several, each must call them all in the
same order.
"""

from __future__ import annotations

from collections import Counter

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, distribute_tensor

from rewards.learning import distributed

LARGE = 1 << 20
"""An embedding of more weights than this is sharded by itself."""


def layers_of(network: nn.Module) -> nn.ModuleList:
    """Returns the network's stack of layers: its longest list of modules."""
    return max((module for module in network.modules() if isinstance(module, nn.ModuleList)), key=len)


def shard(network: nn.Module, device: torch.device, *methods: str) -> None:
    """Shards each layer and each large embedding by itself and then the rest, in fp32.

    Autocast computes a step in bf16, while evaluation stays exact. Gathering in bf16 would halve the traffic, but a
    model's dev loss would differ from that of the model once stored. The weights are gathered in calls of the network
    and of its `methods`, and in no others.
    """
    if distributed.size() == 1:
        return
    mesh = init_device_mesh(device.type, (distributed.size(),))
    for module in (*layers_of(network), *large_embeddings(network)):
        fully_shard(module, mesh=mesh)
    fully_shard(network, mesh=mesh)
    for method in methods:
        register_fsdp_forward_method(network, method)


def large_embeddings(network: nn.Module) -> list[nn.Module]:
    """Returns the embeddings that are sharded by themselves."""
    # Together with the rest it would stay whole for as long as a pass takes. One whose weights are the last layer's as
    # well stays with the rest: sharded apart, the two modules would train two different weights.
    holders = Counter(id(p) for module in network.modules() for p in module.parameters(recurse=False))
    embeddings = [module for module in network.modules() if isinstance(module, nn.Embedding)]
    return [m for m in embeddings if m.weight.numel() > LARGE and holders[id(m.weight)] == 1]


def reduce_gradients(network: nn.Module, *, now: bool) -> None:
    """Says whether the next backward pass reduces gradients over the processes, as the last part of a step does.

    Before that they stay in each process: reducing after every part would send the same amount several times.
    """
    if isinstance(network, FSDPModule):
        network.set_requires_gradient_sync(now)


def settle(network: nn.Module) -> None:
    """Shards the weights again after a pass without a backward one, which leaves them in one piece."""
    for module in network.modules():
        if isinstance(module, FSDPModule):
            module.reshard()


def whole(value: Tensor) -> Tensor:
    """Returns a sharded tensor in one piece, in every process."""
    return value.full_tensor() if isinstance(value, DTensor) else value


def like(value: Tensor, pattern: Tensor) -> Tensor:
    """Returns a tensor that is in one piece, sharded as the pattern is; the first process's values count."""
    if isinstance(pattern, DTensor):
        return distribute_tensor(value.to(pattern.device), pattern.device_mesh, pattern.placements)
    return value


def own_part(value: Tensor) -> tuple[Tensor, int]:
    """Returns the rows of a tensor that this process holds, and the number of the first of them.

    They share the tensor's memory. A tensor that is not sharded is held as a whole.
    """
    if not isinstance(value, DTensor):
        return value, 0
    # FSDP2 divides the first dimension as torch.chunk does: equal parts, of which the last ones may be short or empty.
    rows = -(-value.shape[0] // distributed.size())
    return value.to_local(), min(distributed.rank() * rows, value.shape[0])
