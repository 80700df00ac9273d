"""Loads a network over several processes: each allocates its own part of the weights and reads nothing else.

The network is built without weights, sharded, and filled from the safetensors files. Networks whose stored weights
transformers splits or merges as it loads them (mixtures of experts), or which tie weights, are left to transformers,
and each process holds them whole until they are sharded.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from accelerate import init_empty_weights
from torch import nn
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import WeightRenaming, rename_source_key
from transformers.initialization import no_init_weights
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME
from transformers.utils.hub import cached_file, get_checkpoint_shard_files

from rewards.learning import adapters, distributed
from rewards.learning.refusals import Refused
from rewards.learning.tensor_files import Stored, stored_in


class IncompleteWeights(Refused):
    """The files lack weights that the architecture needs; transformers would fill them with random numbers."""


def require_complete(missing: Sequence[str]) -> None:
    """Raises IncompleteWeights if a load has reported missing weights."""
    if missing:
        raise IncompleteWeights(f"the files lack {len(missing)} weights, {min(missing)} among them")


@contextmanager
def without_weights() -> Iterator[None]:
    """Lets modules be made whose parameters take no memory (PyTorch's meta device); buffers are computed as usual."""
    with init_empty_weights(include_buffers=False), no_init_weights():
        yield


def is_empty(network: nn.Module) -> bool:
    """Returns whether the network was made without weights."""
    return any(parameter.is_meta for parameter in network.parameters())


def loads_in_parts(network: Any) -> bool:
    """Returns whether each process can read its own part of this network of transformers, tensor by tensor."""
    if distributed.size() == 1 or network.all_tied_weights_keys:
        return False
    return all(isinstance(change, WeightRenaming) for change in get_model_conversion_mapping(network))


def weight_files(place: str, *, local: bool) -> list[Path]:
    """Returns the safetensors files of a directory or Hub id; raises OSError where it has none."""
    index = cached_file(
        place, SAFE_WEIGHTS_INDEX_NAME, local_files_only=local, _raise_exceptions_for_missing_entries=False
    )
    if index is None:
        return [Path(str(cached_file(place, SAFE_WEIGHTS_NAME, local_files_only=local)))]
    paths, _ = get_checkpoint_shard_files(place, index, local_files_only=local)  # type: ignore[no-untyped-call]
    return [Path(path) for path in paths]


def stored_weights(network: Any, paths: Sequence[Path]) -> dict[str, Stored]:
    """Returns the tensors of the files by the names that they have in this network of transformers."""
    stored, own = stored_in(paths), network.state_dict()
    changes = [change for change in get_model_conversion_mapping(network) if isinstance(change, WeightRenaming)]
    prefix = network.base_model_prefix
    return {rename_source_key(key, changes, [], prefix, own)[0]: tensor for key, tensor in stored.items()}


def lacking(network: Any, stored: Mapping[str, Stored]) -> list[str]:
    """Returns the names of the parameters that no file holds and that the architecture needs."""
    optional = [re.compile(pattern) for pattern in network._keys_to_ignore_on_load_missing or ()]
    names = [name for name, _ in network.named_parameters() if name not in stored]
    return [name for name in names if not any(pattern.search(name) for pattern in optional)]


def allocate(network: nn.Module, device: torch.device) -> None:
    """Gives the network, which may be sharded, memory for its weights on the device, filled with 0."""
    buffers = {name: buffer.clone() for name, buffer in network.named_buffers()}
    network.to_empty(device=device)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
        for name, buffer in network.named_buffers():
            buffer.copy_(buffers[name])


def fill(network: nn.Module, stored: Mapping[str, Stored], *, may_be_short: Collection[str] = ()) -> None:
    """Reads this process's part of each weight of the network.

    Those whose names are in `may_be_short` may have more rows than are stored; these are 0.

    Raises:
        IncompleteWeights: a stored weight has another shape than the architecture says.
    """
    for name, target in adapters.plain_names(network.state_dict(keep_vars=True)).items():
        if tensor := stored.get(name):
            given, wanted = tensor.shape, list(target.shape)
            if given != wanted and not (name in may_be_short and given[1:] == wanted[1:] and given[0] < wanted[0]):
                raise IncompleteWeights(f"{name} in the files is of shape {given}, but the architecture has {wanted}")
            tensor.fill(target.detach())
