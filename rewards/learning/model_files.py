"""Stores and loads reward models: a standard Hugging Face directory plus `reward_model.json`, its manifest.

The head for segments, where there is one, lies in a folder of its own, `segments/head.safetensors`. transformers, vLLM
and others read the weights beside config.json only, so they load the same model with it as without; the manifest names
the aspects, in the order of the head's rows, and holds the file's sha256.

Only safetensors and JSON are read or written, so a checkpoint from elsewhere cannot run code.
"""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

from rewards.learning import distributed
from rewards.learning.adapters import plain_names
from rewards.learning.atomic_directories import write_json
from rewards.learning.chat_templates import FIRST_RENDERING, RENDERING, UnrenderableConversation, template_hash
from rewards.learning.data import EXAMPLE, file_sha256
from rewards.learning.inference import predict
from rewards.learning.metrics import weighted_sum
from rewards.learning.model import DECODER, ENCODER, DecoderReward, EncoderReward, Loaded, RewardNetwork
from rewards.learning.model_loading import (
    add_segment_head,
    encoder_of,
    fill,
    install,
    loads_in_parts,
    make_frame,
    pretrained,
)
from rewards.learning.refusals import Refused
from rewards.learning.sharding import whole
from rewards.learning.tensor_files import Stored, stored_in, write_shards

FORMAT = 1
MANIFEST = "reward_model.json"
HEAD = "head.safetensors"
SEGMENT_HEAD = "segments/head.safetensors"
"""In a folder of its own: other software reads every safetensors file beside the config."""
OF_SEGMENTS = ("aspects", "aspect_means", "by_segments")
RIDGE, FINETUNED = "ridge", "finetuned"


class NoCheckpoint(Refused):
    """The directory holds no reward model, or one of another format."""


class CorruptCheckpoint(Refused):
    """A file of the checkpoint is missing, or differs from the one that was written."""


@dataclass(frozen=True)
class Manifest:
    """Describes a stored model and how it was made.

    `means` are the training labels' means by attribute, the trivial predictor; `levels` holds the number of levels of
    each attribute or aspect that has not five; `files` the sha256 of every other file.

    `example` is the reward of data.EXAMPLE in float32; None where the model cannot read it. `rendering` is the way in
    which it turns conversations into tokens. A manifest that does not say so is older than the second way.

    A model that scores segments as well has `aspects` with the means of their training labels. With `by_segments` its
    attributes are these aspects: it has learnt the scores of a response as the means over its segments. A manifest of
    another model has none of the three.
    """

    kind: str
    attributes: tuple[str, ...]
    attribute_weights: Mapping[str, float]
    means: tuple[float, ...]
    pooling: str
    backbone: str
    template: str
    template_hash: str
    max_length: int
    snapshot: str
    training: Mapping[str, Any]
    levels: Mapping[str, int] = dataclasses.field(default_factory=dict)
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    format: int = FORMAT
    aspects: tuple[str, ...] = ()
    aspect_means: tuple[float, ...] = ()
    by_segments: bool = False
    rendering: int = FIRST_RENDERING
    example: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Returns the manifest as it is stored."""
        fields = dataclasses.asdict(self)
        return fields if self.aspects else {name: fields[name] for name in fields if name not in OF_SEGMENTS}


@dataclass(frozen=True)
class Checkpoint:
    loaded: Loaded
    manifest: Manifest


def save_checkpoint(place: Path, checkpoint: Checkpoint) -> None:
    """Writes the whole directory or nothing. The manifest comes last and holds the sha256 of every other file.

    Every process calls it, as each holds a part of the weights; the first one writes.
    """
    network, tokenizer = checkpoint.loaded.network, checkpoint.loaded.frame.tokenizer
    manifest = dataclasses.replace(checkpoint.manifest, example=_example(checkpoint))
    with distributed.whole_directory(place) as directory:
        save_weights(network.network, directory)
        # No class of transformers has an encoder's head; a decoder's is part of its network.
        if isinstance(network, EncoderReward):
            _save_head(network.head, directory / HEAD)
        if network.segment_head is not None:
            _save_head(network.segment_head, directory / SEGMENT_HEAD)
        if distributed.is_first():
            tokenizer.save_pretrained(directory)
            sign(directory, manifest)


def _example(checkpoint: Checkpoint) -> float | None:
    """Returns the model's reward of the example, computed in float32."""
    try:
        encoded = checkpoint.loaded.frame.encode(EXAMPLE)
    except UnrenderableConversation:
        return None
    exact = dataclasses.replace(checkpoint.loaded, half=False)
    scores = predict(exact, [encoded], batch_tokens=len(encoded.ids))[0].tolist()
    reward = weighted_sum(
        dict(zip(checkpoint.manifest.attributes, scores, strict=True)), checkpoint.manifest.attribute_weights
    )
    return reward if math.isfinite(reward) else None


def save_weights(network: Any, directory: Path) -> None:
    """Writes config.json and the weights as transformers lays them out."""
    weights = plain_names(network.state_dict())
    if loads_in_parts(network):
        write_shards(directory, weights)
        if distributed.is_first():
            network.config.architectures, network.config.dtype = [type(network).__name__], "float32"
            network.config.save_pretrained(directory)
        return
    weights = {name: whole(tensor) for name, tensor in weights.items()}
    if distributed.is_first():
        network.save_pretrained(directory, state_dict=weights)


def _save_head(head: nn.Linear, path: Path) -> None:
    tensors = {name: whole(tensor).contiguous() for name, tensor in head.state_dict().items()}
    if distributed.is_first():
        path.parent.mkdir(exist_ok=True)
        save_file(tensors, path)


def copy_checkpoint(former: Path, new: Path) -> None:
    """Stores a model a second time, under another name."""
    with distributed.whole_directory(new) as directory:
        if distributed.is_first():
            shutil.copytree(former, directory, dirs_exist_ok=True)


def sign(directory: Path, manifest: Manifest) -> None:
    """Writes the manifest with the sha256 of every file that is in the directory."""
    paths = sorted(path for path in directory.rglob("*") if path.is_file())
    files = {path.relative_to(directory).as_posix(): file_sha256(path) for path in paths}
    write_json(directory / MANIFEST, dataclasses.replace(manifest, files=files).as_json())


def load_checkpoint(directory: Path, *, device: torch.device) -> Checkpoint:
    """Returns the model in fp32 after its files were verified; of several processes each holds a part of the weights.

    Raises:
        NoCheckpoint, CorruptCheckpoint: the directory holds no model, or not the one that was written.
        IncompleteWeights: the files lack weights.
    """
    manifest = read_manifest(directory)
    distributed.by_first(lambda: verify(directory, manifest))
    tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True, trust_remote_code=False)
    network, stored = _load_network(directory, manifest)
    install(network, stored, device=device)
    frame = make_frame(
        tokenizer,
        encoder=manifest.pooling == ENCODER,
        template=manifest.template,
        max_length=manifest.max_length,
        rendering=manifest.rendering,
    )
    return Checkpoint(Loaded(network, frame), manifest)


def read_manifest(directory: Path) -> Manifest:
    """Returns a stored model's manifest without looking at its files; raises NoCheckpoint or CorruptCheckpoint."""
    path = directory / MANIFEST
    if not path.is_file():
        raise NoCheckpoint(f"{directory} holds no reward model: it has no {MANIFEST}")
    try:
        fields = json.loads(path.read_bytes())
        lists = {name: tuple(fields[name]) for name in ("attributes", "means", *OF_SEGMENTS[:2]) if name in fields}
        manifest = Manifest(**{**fields, **lists})
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptCheckpoint(f"{path} is not a reward model's manifest: {error}") from None
    is_known = manifest.rendering in (FIRST_RENDERING, RENDERING)
    if manifest.format != FORMAT or manifest.pooling not in (ENCODER, DECODER) or not is_known:
        raise NoCheckpoint(f"{path} is of a format that this version does not read")
    return manifest


def verify(directory: Path, manifest: Manifest) -> None:
    """Raises CorruptCheckpoint unless every file and the template have the hashes of the manifest."""
    for name, digest in manifest.files.items():
        path = directory / name
        if not path.is_file():
            raise CorruptCheckpoint(f"{path} is missing from the checkpoint")
        if file_sha256(path) != digest:
            raise CorruptCheckpoint(f"{path} is not the file that was written: its sha256 differs")
    if template_hash(manifest.template) != manifest.template_hash:
        raise CorruptCheckpoint(f"the template in {directory / MANIFEST} is not the one that was written")


def _load_network(directory: Path, manifest: Manifest) -> tuple[RewardNetwork, dict[str, Stored]]:
    """Returns the network and the tensors that it still has to read."""
    if manifest.pooling == ENCODER:
        network, stored = pretrained(AutoModel, str(directory), local=True)
        reward: RewardNetwork = encoder_of(network, outputs=len(manifest.attributes))
        heads = _stored_head(directory / HEAD, "head")
    else:
        network, stored = pretrained(AutoModelForSequenceClassification, str(directory), local=True)
        reward, heads = DecoderReward(network), {}
    add_segment_head(reward, len(manifest.aspects))
    if manifest.aspects:
        heads |= _stored_head(directory / SEGMENT_HEAD, "segment_head")
    if stored:
        return reward, stored | heads
    fill(reward, heads)
    return reward, {}


def _stored_head(path: Path, name: str) -> dict[str, Stored]:
    return {f"{name}.{key}": tensor for key, tensor in stored_in([path]).items()}
