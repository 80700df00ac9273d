"""Reads and writes safetensors files of tensors that several processes hold in parts.

No process holds more than its own part and one whole tensor at a time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME

from rewards.learning import distributed
from rewards.learning.atomic_directories import write_json
from rewards.learning.sharding import own_part, whole

KINDS = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16", torch.int64: "I64"}
ALIGNMENT = 8
SHARD = 5 << 30
"""The most bytes of one file of weights, unless a single tensor has more."""
AT_ONCE = 1 << 24
"""Bytes of a tensor that are read into memory together."""


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Writes a safetensors file. Every process calls it with its parts; the first one writes.

    The format is a length in 8 bytes, a JSON header of that length, and the tensors one after the other.
    """
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, tensor in tensors.items():
        start, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": KINDS[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    if not distributed.is_first():
        for tensor in tensors.values():
            whole(tensor)  # a collective call
        return
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors.values():
            # As bytes, since NumPy has no bfloat16.
            file.write(whole(tensor).detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)


def write_shards(directory: Path, tensors: Mapping[str, Tensor]) -> None:
    """Writes the weights of a model as transformers lays them out: one file, or several with an index."""
    files: list[dict[str, Tensor]] = [{}]
    room = SHARD
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        if files[-1] and size > room:
            files.append({})
            room = SHARD
        files[-1][name] = tensor
        room -= size
    if len(files) == 1:
        write_tensors(directory / SAFE_WEIGHTS_NAME, tensors)
        return
    names = [f"model-{number:05d}-of-{len(files):05d}.safetensors" for number in range(1, len(files) + 1)]
    for file, part in zip(names, files, strict=True):
        write_tensors(directory / file, part)
    if distributed.is_first():
        total = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
        of = {name: file for file, part in zip(names, files, strict=True) for name in part}
        write_json(directory / SAFE_WEIGHTS_INDEX_NAME, {"metadata": {"total_size": total}, "weight_map": of})


@dataclass(frozen=True)
class Stored:
    """A tensor in a safetensors file, of which nothing is read yet."""

    path: Path
    key: str

    def fill(self, target: Tensor) -> None:
        """Copies into the target, which may be sharded, its own part of the stored rows.

        Where the target has more rows than are stored, the last ones become 0.
        """
        part, first = own_part(target)
        with safe_open(self.path, framework="pt") as file, torch.no_grad():
            if not target.shape:
                part.copy_(file.get_tensor(self.key))
                return
            rows = file.get_slice(self.key)
            stored = min(max(rows.get_shape()[0] - first, 0), len(part))
            step = max(1, AT_ONCE // max(1, part[:1].numel() * part.element_size()))
            for start in range(0, stored, step):
                end = min(start + step, stored)
                part[start:end].copy_(rows[first + start : first + end])
            part[stored:].zero_()

    @property
    def shape(self) -> list[int]:
        with safe_open(self.path, framework="pt") as file:
            shape: list[int] = file.get_slice(self.key).get_shape()
        return shape


def stored_in(paths: Sequence[Path]) -> dict[str, Stored]:
    """Returns every tensor of the files by its name."""
    stored: dict[str, Stored] = {}
    for path in paths:
        with safe_open(path, framework="pt") as file:
            stored |= {key: Stored(path, key) for key in file.keys()}  # noqa: SIM118 - not a mapping
    return stored
