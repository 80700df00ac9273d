"""Chooses how many of a backbone's layers are read.

The last layers of an encoder serve what it was trained for, such as similarity of meaning; earlier ones may say more
about quality. Which depth is best depends on the data, so the ridge decides by its left-out errors.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from rewards.learning.model import EncoderReward, RewardNetwork
from rewards.learning.refusals import Refused
from rewards.learning.sharding import layers_of

SHARE = 2 / 3


class NoSuchDepth(Refused):
    """The backbone has fewer layers than were asked for, or has to be read as a whole."""


def depths(network: RewardNetwork, wanted: int) -> list[Sequence[nn.Module]]:
    """Returns the stacks of layers to try: the first `wanted`, or if that is 0, all and an encoder's first two thirds.

    Raises:
        NoSuchDepth: the backbone has fewer layers, or it can only be read as a whole.
    """
    every = list(layers_of(network.network))
    if wanted > len(every):
        raise NoSuchDepth(f"layers is {wanted}, but the backbone has {len(every)}: use 1 to {len(every)}, or 0")
    # Decoders are read as a whole. So are encoders that share one layer's weights among all passes: they have no stack
    # to shorten.
    if not isinstance(network, EncoderReward) or len(every) < 2:
        if wanted:
            raise NoSuchDepth(
                "layers is for encoders that are a pile of layers: this backbone is read as a whole, use 0"
            )
        return [every]
    if wanted:
        return [every[:wanted]]
    return [every, every[: max(1, round(len(every) * SHARE))]]


def read(network: RewardNetwork, layers: Sequence[nn.Module]) -> None:
    """Makes the network compute and store only these layers from now on."""
    former = layers_of(network.network)
    if list(former) == list(layers):
        return
    name = next(name for name, module in network.network.named_modules() if module is former)
    network.network.set_submodule(name, nn.ModuleList(layers))
    # The stored configuration must say how many layers there are: transformers would else build, and miss, the others.
    network.network.config.num_hidden_layers += len(layers) - len(former)


def settle(network: RewardNetwork) -> None:
    """Makes the chosen depth final: the configuration drops the kinds of the layers that are gone.

    Until then `read` may put layers back, which need their kinds.
    """
    config = network.network.config
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[: config.num_hidden_layers]
