"""Prepares a network for training and turns it back into a plain model afterwards.

The configuration chooses activation checkpointing and compilation. Dropout is off in every case.
"""

from __future__ import annotations

from torch import nn

from rewards.learning.adapters import merge_adapters
from rewards.learning.config import TrainConfig
from rewards.learning.model import RewardNetwork
from rewards.learning.sharding import layers_of


def prepare(network: RewardNetwork, config: TrainConfig) -> None:
    """Changes the network in place before the first step; `finish` removes what a stored model must not contain."""
    if config.activation_checkpointing:
        network.network.activation_checkpointing_enable({"use_reentrant": False})
        # transformers recomputes activations in training mode only. That mode would switch dropout on, so its rates
        # are set to 0: without that a resumed run, which stores no random state, would differ from an unbroken one.
        network.train()
        without_dropout(network)
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


def without_dropout(network: nn.Module) -> None:
    """Sets every dropout rate of the network to 0, in training mode as well."""
    for module in network.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        # Attention layers pass this rate to a function instead of holding an nn.Dropout.
        if hasattr(module, "attention_dropout"):
            module.attention_dropout = 0.0  # type: ignore[assignment]
