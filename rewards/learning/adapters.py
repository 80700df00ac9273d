"""Low-rank adapters (LoRA): puts them into a backbone, gives them their first values, and merges them into its weights.

An adapter that has not been trained changes nothing, as its second matrix is 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar

import torch
from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.lora import LoraLayer
from torch import nn

from rewards.learning.sharding import like

MARK, FIRST, INNER = ".lora_", ".lora_A.", ".base_layer"
Value = TypeVar("Value")


def add_adapters(backbone: Any, rank: int) -> None:
    """Puts adapters into every linear layer of the backbone, whose own weights are no longer trained."""
    inject_adapter_in_model(LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear"), backbone)


def start_adapters(network: nn.Module, seed: int) -> None:
    """Gives the adapters the values from which training starts: the same for any number of processes."""
    dice = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if FIRST in name:
                whole = nn.init.kaiming_uniform_(torch.empty(parameter.shape), a=math.sqrt(5), generator=dice)
                parameter.copy_(like(whole, parameter))
            elif MARK in name:
                parameter.zero_()


def merge_adapters(network: nn.Module) -> None:
    """Adds the adapters to the weights that they adapt, and removes them."""
    # The list is made first, because the loop replaces modules of the tree that it walks.
    for name, module in list(network.named_modules()):
        if isinstance(module, LoraLayer):
            module.merge()
            network.set_submodule(name, module.get_base_layer())


def plain_names(tensors: Mapping[str, Value]) -> dict[str, Value]:
    """Returns the tensors of a network's own weights, by the names that they have without adapters."""
    return {name.replace(INNER, ""): tensor for name, tensor in tensors.items() if MARK not in name}


def is_adapted(network: nn.Module) -> bool:
    """Returns whether the network has adapters."""
    return any(isinstance(module, LoraLayer) for module in network.modules())
