"""Stores and restores the state of a run: parameters, optimizer and place, in safetensors and JSON.

There is no random state to keep: dropout is off, and the order of batches follows from seed and epoch.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rewards.learning import distributed
from rewards.learning.atomic_directories import write_json
from rewards.learning.data import file_sha256
from rewards.learning.progress import Progress
from rewards.learning.refusals import Refused
from rewards.learning.tensor_files import Stored, stored_in, write_tensors

TENSORS, PLACE = "state.safetensors", "state.json"


class StaleState(Refused):
    """The stored state is damaged, or belongs to another configuration or snapshot."""


@dataclass
class Place:
    """The loop's position and the best step of the current stage; step 0 of the first stage is the ridge head.

    `kept` holds the best steps of the stages that are over, `stale` counts the epochs since the last better one, and
    `micro_tokens` is the size of a part that memory turned out to hold.
    """

    stage: int = 0
    kept: list[int] = field(default_factory=list)
    micro_tokens: int = 0
    epoch: int = 0
    batch: int = 0
    step: int = 0
    best_step: int = 0
    best_loss: float = float("inf")
    stale: int = 0
    curve: list[dict[str, Any]] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    seconds: float = 0.0
    tokens: int = 0


@dataclass
class State:
    """All that a stopped run needs to go on."""

    network: nn.Module
    optimizer: torch.optim.Optimizer
    place: Place
    best: dict[str, Tensor]  # the trained parameters of best_step


def trained_parameters(network: nn.Module) -> dict[str, nn.Parameter]:
    """Returns the parameters that have a gradient, by name: with adapters a small part of the network."""
    return {name: parameter for name, parameter in network.named_parameters() if parameter.requires_grad}


def save_state(directory: Path, state: State, *, identity: str) -> None:
    """Writes the state into the directory, which appears whole or not at all.

    Every process calls it, as each holds a part; the first one writes.
    """
    tensors = {f"network.{name}": p.detach() for name, p in trained_parameters(state.network).items()}
    tensors |= {f"best.{name}": tensor for name, tensor in state.best.items()}
    for index, slots in state.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{slot}": tensor for slot, tensor in slots.items()}
    with distributed.whole_directory(directory) as unfinished:
        write_tensors(unfinished / TENSORS, tensors)
        if distributed.is_first():
            about = {"identity": identity, "sha256": file_sha256(unfinished / TENSORS)}
            write_json(unfinished / PLACE, {**about, "place": dataclasses.asdict(state.place)})


def resume(checkpoint: Path, state: State, *, identity: str, progress: Progress) -> bool:
    """Returns whether there is a checkpoint of the same identity; the state is then what it holds."""
    if not checkpoint.exists():
        return False
    try:
        restore_state(checkpoint, state, identity=identity)
    except StaleState as error:
        progress.tell("checkpoint_refused", reason=str(error))
        return False
    return True


def restore_state(directory: Path, state: State, *, identity: str) -> None:
    """Fills `state` from the directory; of several processes each reads its own part.

    Raises:
        StaleState: the stored state is damaged, or belongs to another run; `state` is unchanged.
    """
    distributed.by_first(lambda: _verify(directory, identity))
    place = Place(**json.loads((directory / PLACE).read_bytes())["place"])
    tensors = stored_in([directory / TENSORS])
    parameters = trained_parameters(state.network)
    for name, parameter in parameters.items():
        tensors[f"network.{name}"].fill(parameter.detach())
    # Whoever chooses no best step stores none.
    best = {name: tensor for name in parameters if (tensor := tensors.get(f"best.{name}"))}
    state.best = {name: _read(tensor, like=parameters[name]) for name, tensor in best.items()}
    in_order = [parameter for group in state.optimizer.param_groups for parameter in group["params"]]
    # By the number of its parameter, and sharded as that is; a scalar, such as the count of steps, is not sharded.
    slots: dict[int, dict[str, Any]] = {}
    for key, stored in tensors.items():
        if key.startswith("optimizer."):
            _, index, slot = key.split(".")
            like = in_order[int(index)] if stored.shape else torch.zeros(())
            slots.setdefault(int(index), {})[slot] = _read(stored, like=like)
    optimizer = state.optimizer.state_dict()
    optimizer["state"] = slots
    state.optimizer.load_state_dict(optimizer)
    state.place = place


def _verify(directory: Path, identity: str) -> None:
    try:
        about = json.loads((directory / PLACE).read_bytes())
        Place(**about["place"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise StaleState(f"{directory / PLACE} cannot be read: {error}") from None
    if about.get("identity") != identity:
        raise StaleState(f"{directory} belongs to another configuration or snapshot")
    if not (directory / TENSORS).is_file() or file_sha256(directory / TENSORS) != about.get("sha256"):
        raise StaleState(f"{directory / TENSORS} is not the file that was written")


def _read(stored: Stored, *, like: Tensor) -> Tensor:
    """Returns the stored tensor, sharded and placed as `like` is."""
    value = torch.empty_like(like, requires_grad=False)
    stored.fill(value)
    return value
