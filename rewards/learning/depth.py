"""How many of a backbone's layers are read.

The last layers of an encoder serve what it was made for, likeness of meaning say; those before may tell more of
quality. Which ones do depends on the data, so the ridge decides, by its left-out errors.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from rewards.learning.model import EncoderReward, RewardNetwork
from rewards.learning.refusals import Refused

SHARE = 2 / 3


class NoSuchDepth(Refused):
    """The backbone does not have so many layers, or has to be read as a whole."""


def layers_of(network: nn.Module) -> nn.ModuleList:
    """What the network is a pile of."""
    return max((module for module in network.modules() if isinstance(module, nn.ModuleList)), key=len)


def depths(network: RewardNetwork, wanted: int) -> list[Sequence[nn.Module]]:
    """The layers to try: `wanted` of them or, if that is 0, all and, of an encoder, the first two thirds."""
    every = list(layers_of(network.network))
    if wanted > len(every):
        raise NoSuchDepth(f"layers is {wanted}, but the backbone has {len(every)}: use 1 to {len(every)}, or 0")
    if not _may_end_early(network):
        if wanted:
            raise NoSuchDepth(
                "layers is for encoders that are a pile of layers: this backbone is read as a whole, use 0"
            )
        return [every]
    if wanted:
        return [every[:wanted]]
    return [every, every[: max(1, round(len(every) * SHARE))]]


def read(network: RewardNetwork, layers: Sequence[nn.Module]) -> None:
    """Only these layers are passed through, and stored, from now on."""
    former = layers_of(network.network)
    if list(former) == list(layers):
        return
    name = next(name for name, module in network.network.named_modules() if module is former)
    network.network.set_submodule(name, nn.ModuleList(layers))
    network.network.config.num_hidden_layers += len(layers) - len(former)


def settle(network: RewardNetwork) -> None:
    """No more is to be put back: the configuration forgets what kinds of layers the others were."""
    config = network.network.config
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[: config.num_hidden_layers]


def _may_end_early(network: RewardNetwork) -> bool:
    """Some share one layer's weights among all passes, and so have no pile to take from."""
    return isinstance(network, EncoderReward) and len(layers_of(network.network)) > 1
