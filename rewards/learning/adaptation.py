"""How a backbone is made ready to be trained: nothing dropped out, few or all weights, less memory or more speed."""

from __future__ import annotations

from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.lora import LoraLayer
from torch import nn

from rewards.learning import distributed
from rewards.learning.config import TrainConfig
from rewards.learning.model import DecoderReward, RewardNetwork
from rewards.learning.refusals import Refused


class NotForEncoders(Refused):
    """The setting is for decoders only."""


def prepare(network: RewardNetwork, config: TrainConfig) -> None:
    """Before the first step; `finish` undoes what a stored model must not have."""
    if config.lora_rank:
        _adapt(network, config.lora_rank)
    if config.activation_checkpointing:
        network.network.activation_checkpointing_enable({"use_reentrant": False})
        network.train()  # else it would not happen
        without_dropout(network)
    if config.compile:
        network.network.base_model.compile(dynamic=True)
    distributed.shard(network)


def finish(network: RewardNetwork, config: TrainConfig) -> None:
    """Adapters become part of the weights they adapt: what is stored loads without them."""
    network.eval()
    if config.lora_rank:
        for name, module in list(network.named_modules()):
            if isinstance(module, LoraLayer):
                module.merge()
                network.set_submodule(name, module.get_base_layer())


def without_dropout(network: nn.Module) -> None:
    for module in network.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if hasattr(module, "attention_dropout"):
            module.attention_dropout = 0.0  # type: ignore[assignment]


def _adapt(network: RewardNetwork, rank: int) -> None:
    """Low-rank adapters in every linear layer of the backbone; the head stays as it is, and is trained."""
    if not isinstance(network, DecoderReward):
        raise NotForEncoders("lora_rank is for decoders; an encoder is small enough to train every weight")
    settings = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear")
    inject_adapter_in_model(settings, network.network.base_model)
