"""The state of a run that was stopped: parameters, optimizer and place, in safetensors and JSON, verified before use.

There is no random state to keep: dropout is off, and the order of batches follows from seed and epoch.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from rewards.learning.data import file_sha256
from rewards.learning.directories import whole_directory, write_json
from rewards.learning.refusals import Refused

TENSORS, PLACE = "state.safetensors", "state.json"


class StaleState(Refused):
    """The stored state is damaged, or belongs to another configuration or snapshot."""


@dataclass
class Place:
    """Where the loop is, and the best it has seen; step 0 is the ridge head on the frozen backbone."""

    epoch: int = 0
    batch: int = 0
    step: int = 0
    best_step: int = 0
    best_loss: float = float("inf")
    stale: int = 0
    curve: list[dict[str, float]] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    seconds: float = 0.0
    tokens: int = 0


@dataclass
class State:
    network: nn.Module
    optimizer: torch.optim.Optimizer
    place: Place
    best: dict[str, Tensor]  # the parameters of best_step


def save_state(directory: Path, state: State, *, identity: str) -> None:
    with whole_directory(directory) as unfinished:
        save_file(_tensors(state), unfinished / TENSORS)
        about = {"identity": identity, "sha256": file_sha256(unfinished / TENSORS)}
        write_json(unfinished / PLACE, {**about, "place": dataclasses.asdict(state.place)})


def restore_state(directory: Path, state: State, *, identity: str) -> None:
    """Fills `state` from the directory; raises StaleState, before anything has changed, if it cannot be trusted."""
    place = _verified_place(directory, identity)
    tensors = load_file(directory / TENSORS)
    with torch.no_grad():
        for name, parameter in state.network.named_parameters():
            parameter.copy_(tensors[f"network.{name}"])
    state.best = {key.removeprefix("best."): t for key, t in tensors.items() if key.startswith("best.")}
    optimizer = state.optimizer.state_dict()
    optimizer["state"] = _slots(tensors)
    state.optimizer.load_state_dict(optimizer)
    state.place = place


def _verified_place(directory: Path, identity: str) -> Place:
    try:
        about = json.loads((directory / PLACE).read_bytes())
        place = Place(**about["place"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise StaleState(f"{directory / PLACE} cannot be read: {error}") from None
    if about.get("identity") != identity:
        raise StaleState(f"{directory} belongs to another configuration or snapshot")
    if not (directory / TENSORS).is_file() or file_sha256(directory / TENSORS) != about.get("sha256"):
        raise StaleState(f"{directory / TENSORS} is not the file that was written")
    return place


def _tensors(state: State) -> dict[str, Tensor]:
    tensors = {f"network.{name}": p.detach() for name, p in state.network.named_parameters()}
    tensors |= {f"best.{name}": tensor for name, tensor in state.best.items()}
    for index, slots in state.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{slot}": tensor for slot, tensor in slots.items()}
    # Copies, as safetensors refuses tensors that share memory.
    return {name: tensor.contiguous().clone() for name, tensor in tensors.items()}


def _slots(tensors: dict[str, Tensor]) -> dict[int, dict[str, Any]]:
    slots: dict[int, dict[str, Any]] = {}
    for key, tensor in tensors.items():
        if key.startswith("optimizer."):
            _, index, slot = key.split(".")
            slots.setdefault(int(index), {})[slot] = tensor
    return slots
