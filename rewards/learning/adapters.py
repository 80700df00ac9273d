"""Prepares a network for training and makes a plain model of it afterwards.

Low-rank adapters (LoRA) are put into a backbone and merged into its weights. An adapter that has not been trained
changes nothing, as its second matrix is 0. Dropout is off in every case.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar

import torch
from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.lora import LoraLayer
from torch import nn

from rewards.learning.config import TrainConfig
from rewards.learning.model import RewardNetwork
from rewards.learning.sharding import layers_of, like

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


# Training ---------------------------------------------------------------------------------------------------


def prepare(network: RewardNetwork, config: TrainConfig) -> None:
    """Changes the network in place before the first step; `finish` removes what a stored model must not contain."""
    if config.activation_checkpointing:
        network.train()
        recompute_activations(network.network)
    if config.compile:
        # The layers have one code, which is compiled once for all of them. Batches differ in length: static shapes
        # would be compiled again for every new one.
        for layer in layers_of(network.network):
            layer.compile(dynamic=True)


def finish(network: RewardNetwork) -> None:
    """Merges adapters into the weights that they adapt, so that other software loads the stored model without peft.

    Layers are no longer compiled: the stored model will not be either, and both must give the same.
    """
    network.eval()
    for layer in layers_of(network.network):
        layer._compiled_call_impl = None
    merge_adapters(network)


def recompute_activations(model: Any) -> None:
    """Has a model of transformers compute its activations twice instead of keeping them."""
    model.activation_checkpointing_enable({"use_reentrant": False})
    # transformers recomputes activations in training mode only. That mode would switch dropout on, so its rates are set
    # to 0: without that a resumed run, which stores no random state, would differ from an unbroken one.
    model.train()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        # Attention layers pass this rate to a function instead of holding an nn.Dropout.
        if hasattr(module, "attention_dropout"):
            module.attention_dropout = 0.0
