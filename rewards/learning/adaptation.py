"""Prepares a backbone for training and turns it back into a plain model afterwards.

The configuration chooses low-rank adapters or all weights, activation checkpointing, compilation, and sharding over
several processes. Dropout is off in every case.
"""

from __future__ import annotations

from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.lora import LoraLayer
from torch import nn

from rewards.learning import distributed
from rewards.learning.config import TrainConfig
from rewards.learning.model import DecoderReward, RewardNetwork
from rewards.learning.refusals import Refused


class NotForEncoders(Refused):
    """The configuration asks for a setting that exists for decoders only."""


def prepare(network: RewardNetwork, config: TrainConfig) -> None:
    """Changes the network in place before the first step; `finish` removes what a stored model must not contain.

    Raises:
        NotForEncoders: the configuration sets lora_rank, but the backbone is an encoder.
    """
    if config.lora_rank:
        _adapt(network, config.lora_rank)
    if config.activation_checkpointing:
        network.network.activation_checkpointing_enable({"use_reentrant": False})
        # transformers recomputes activations in training mode only. That mode would switch dropout on, so its rates
        # are set to 0: without that a resumed run, which stores no random state, would differ from an unbroken one.
        network.train()
        without_dropout(network)
    if config.compile:
        # Batches differ in length: static shapes would be compiled again for every new one.
        network.network.base_model.compile(dynamic=True)
    # Sharding comes last, as it wraps the parameters that exist by then, adapters included.
    distributed.shard(network)


def finish(network: RewardNetwork, config: TrainConfig) -> None:
    """Merges adapters into the weights that they adapt, so that other software loads the stored model without peft."""
    network.eval()
    if config.lora_rank:
        # The list is made first, because the loop replaces modules of the tree that it walks.
        for name, module in list(network.named_modules()):
            if isinstance(module, LoraLayer):
                module.merge()
                network.set_submodule(name, module.get_base_layer())


def without_dropout(network: nn.Module) -> None:
    """Sets every dropout rate of the network to 0, in training mode as well."""
    for module in network.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        # Attention layers pass this rate to a function instead of holding an nn.Dropout.
        if hasattr(module, "attention_dropout"):
            module.attention_dropout = 0.0  # type: ignore[assignment]


def _adapt(network: RewardNetwork, rank: int) -> None:
    """Puts low-rank adapters into every linear layer of the backbone; the head stays as it is and is trained."""
    if not isinstance(network, DecoderReward):
        raise NotForEncoders("lora_rank is for decoders; an encoder is small enough to train every weight")
    settings = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear")
    inject_adapter_in_model(settings, network.network.base_model)
