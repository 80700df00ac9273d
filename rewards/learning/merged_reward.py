"""Stores a reward model a second time, as the one reward that other software reads: `reward/` beside `model/`.

A stored model has an output for each attribute, and the reward is their weighted sum. As the head is linear, the sum is
the output of one head whose weights are the sum of the attributes' weights. A decoder becomes a sequence classifier of
transformers with a single output. An encoder pools the response and the prompt apart, which no sequence classifier of
transformers does; it becomes a token classifier whose outputs are averaged over either part.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import AutoModel, AutoModelForTokenClassification, AutoTokenizer
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME

from rewards.learning.atomic_directories import whole_directory, write_json
from rewards.learning.chat_templates import frozen
from rewards.learning.data import file_sha256
from rewards.learning.model import DECODER, EncoderReward, collate
from rewards.learning.model_files import HEAD, MANIFEST, Manifest, read_manifest, verify
from rewards.learning.model_loading import SAFE
from rewards.learning.packing import PROBE
from rewards.learning.refusals import Refused

REWARD_MANIFEST = "reward.json"
POOLED = "reward_pooling"
"""What config.json of an encoder's reward has beyond transformers' own settings."""
OUTPUT, OUTPUTS_OF_TOKENS = "reward", ("response", "prompt")
HEAD_WEIGHT = "score.weight"
CLOSE = 1e-4
"""The most by which a token classifier's reward may differ from the model's."""
COPIED = {".jinja", ".json", ".model", ".txt"}


class NoStockClass(Refused):
    """No class of transformers computes this encoder's reward."""


@dataclass(frozen=True)
class _Merged:
    """The head of an encoder's reward: weights [hidden] of response and prompt, the weight of the length, the bias."""

    response: Tensor
    prompt: Tensor
    length: float
    bias: float


def reward(directory: Path) -> None:
    """Reads model/ of `directory` and writes reward/, as `write_reward` does, and raises the same."""
    write_reward(directory / "model", directory / "reward")


def write_reward(model: Path, place: Path) -> None:
    """Reads the model directory `model` and writes `place`, whole or not at all.

    One process does it, also where several trained the model.

    Raises:
        NoCheckpoint, CorruptCheckpoint: the model cannot be read.
        NoStockClass: transformers has no class for it; nothing is written.
    """
    manifest = read_manifest(model)
    verify(model, manifest)
    token_classifier = None if manifest.pooling == DECODER else _token_classifier(model, manifest)
    with whole_directory(place) as directory:
        if token_classifier is None:
            # The weights are not loaded: a model may be larger than the memory. Files without the head are shared
            # with the model where the disk allows it.
            for path in sorted(path for path in model.iterdir() if path.name in manifest.files):
                if path.suffix == ".safetensors":
                    _write_shard(path, _weights(manifest), directory / path.name)
                elif path.suffix in COPIED:
                    shutil.copy(path, directory / path.name)
            _change_json(directory / "config.json", {"id2label": {"0": OUTPUT}, "label2id": {OUTPUT: 0}})
            if (index := directory / SAFE_WEIGHTS_INDEX_NAME).is_file():
                total = sum(_tensor_bytes(path) for path in directory.glob("*.safetensors"))
                metadata = json.loads(index.read_bytes()).get("metadata", {})
                _change_json(index, {"metadata": {**metadata, "total_size": total}})
        else:
            token_classifier.save_pretrained(directory)
            tokenizer = AutoTokenizer.from_pretrained(model, local_files_only=True, trust_remote_code=False)
            # With these other software renders and cuts a prompt as the model has read it.
            tokenizer.chat_template, tokenizer.truncation_side = frozen(manifest.template), "left"
            tokenizer.save_pretrained(directory)
        config = json.loads((directory / "config.json").read_bytes())
        described = {
            "format": 1,
            "architecture": config["architectures"][0],
            "outputs": [name for _, name in sorted(config["id2label"].items())],
            "attribute_weights": dict(manifest.attribute_weights),
            "max_length": manifest.max_length,
            "template_hash": manifest.template_hash,
            "model": file_sha256(model / MANIFEST),
            "files": {path.name: file_sha256(path) for path in sorted(directory.iterdir())},
        }
        write_json(directory / REWARD_MANIFEST, described)


# Decoders --------------------------------------------------------------------------------------------------


def _write_shard(path: Path, weights: list[float], target: Path) -> None:
    with safe_open(path, framework="pt") as file:
        names = list(file.keys())
        if HEAD_WEIGHT not in names:
            try:
                os.link(path, target)
            except OSError:  # another disk, or one without hard links
                shutil.copy(path, target)
            return
        tensors = {name: file.get_tensor(name) for name in names}
    head = tensors[HEAD_WEIGHT]
    tensors[HEAD_WEIGHT] = merged(head, weights)[None, :].to(head.dtype).contiguous()
    save_file(tensors, target, metadata={"format": "pt"})


def merged(weight: Tensor, weights: list[float]) -> Tensor:
    """[features]: the weighted sum of a head's rows, weight [attributes, features], computed in float64."""
    return (torch.tensor(weights, dtype=torch.float64) @ weight.double()).float()


def _tensor_bytes(path: Path) -> int:
    with path.open("rb") as file:
        head = 8 + int.from_bytes(file.read(8), "little")
    return path.stat().st_size - head


def _change_json(path: Path, changes: Mapping[str, Any]) -> None:
    write_json(path, {**json.loads(path.read_bytes()), **changes})


# Encoders --------------------------------------------------------------------------------------------------


def _token_classifier(model: Path, manifest: Manifest) -> Any:
    """Returns the model as a token classifier of transformers, whose outputs have been compared with the model's."""
    ours, head = _ours(model, manifest)
    try:
        network = AutoModelForTokenClassification.from_pretrained(
            model,
            local_files_only=True,
            dtype=torch.float32,
            id2label=dict(enumerate(OUTPUTS_OF_TOKENS)),
            label2id={name: number for number, name in enumerate(OUTPUTS_OF_TOKENS)},
            **SAFE,
        ).eval()
    except ValueError as unknown:  # transformers has no token classifier for this architecture
        raise NoStockClass(str(unknown).splitlines()[0]) from unknown
    linear = network.classifier
    if not isinstance(linear, nn.Linear):
        raise NoStockClass(f"{type(network).__name__} has no linear layer that could hold the head")
    with torch.no_grad():
        linear.weight.copy_(torch.stack([head.response, head.prompt]))
        linear.bias.zero_()
    pooling = {"length_weight": head.length, "bias": head.bias, "max_length": manifest.max_length}
    setattr(network.config, POOLED, pooling)
    _require_close(network, head, ours, _weights(manifest))
    return network


def _ours(model: Path, manifest: Manifest) -> tuple[EncoderReward, _Merged]:
    network = AutoModel.from_pretrained(model, local_files_only=True, dtype=torch.float32, **SAFE).eval()
    ours = EncoderReward(network, outputs=len(manifest.attributes)).eval()
    ours.head.load_state_dict(load_file(model / HEAD))
    weights = _weights(manifest)
    response, prompt, length = torch.split(merged(ours.head.weight.detach(), weights), list(ours.blocks))
    bias = merged(ours.head.bias.detach()[:, None], weights)
    return ours, _Merged(response, prompt, length.item(), bias.item())


def _weights(manifest: Manifest) -> list[float]:
    return [float(manifest.attribute_weights[name]) for name in manifest.attributes]


@torch.no_grad()
def _require_close(network: Any, head: _Merged, ours: EncoderReward, weights: list[float]) -> None:
    """Raises NoStockClass unless the class computes the model's reward: some put further layers before their head."""
    for sample in PROBE:
        batch = collate([sample], pad=0, device=torch.device("cpu"))
        expected = float(ours(batch)[0] @ torch.tensor(weights))
        logits = network(input_ids=batch.ids, attention_mask=batch.mask).logits[0]  # [length, 2]
        of_response, of_prompt = logits[sample.response_start :, 0].mean(), logits[: sample.response_start, 1].mean()
        reward = float(of_response + of_prompt + head.length * torch.log1p(batch.response_tokens[0])) + head.bias
        if not abs(reward - expected) <= CLOSE * max(1.0, abs(expected)):
            raise NoStockClass(f"{type(network).__name__} does not compute this model's reward")
