"""The reference's log-probabilities: computed once and stored by a hash of all that they depend on."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from rewards.learning import distributed, sharding
from rewards.learning.aligning.policy import Policy
from rewards.learning.aligning.sides import Unit
from rewards.learning.atomic_directories import write_json
from rewards.learning.data import file_sha256
from rewards.learning.progress import Count, Progress
from rewards.learning.refusals import Refused
from rewards.learning.tensor_files import stored_in, write_tensors

FORMAT = 1
TENSORS, ABOUT, KEY = "log_probs.safetensors", "about.json", "log_probs"
CPU_TOKENS, GPU_TOKENS = 2_048, 16_384
"""The most tokens of one pass without gradients."""

LogProbs = NDArray[np.float32]


class DamagedReference(Refused):
    """What is stored is not what was written."""


class OtherVocabulary(Refused):
    """The reference has no logits for tokens that the policy reads."""


@dataclass(frozen=True)
class Judgements:
    """Units, and for each the reference's log-probabilities of its sides' learnt tokens, each [learnt tokens]."""

    units: Sequence[Unit]
    reference: Sequence[Sequence[LogProbs]]


def with_reference(
    units: Sequence[Unit], folder: Path, *, source_hash: str, half: bool, load: Callable[[], Policy], progress: Progress
) -> Judgements:
    """Returns the units with the reference's log-probabilities, from the folder if they are there, else computed.

    source_hash: what the reference computes, as `policy_hash` returns it. load: gives the reference.
    """
    digest = hashlib.sha256()
    for unit in units:
        for side in unit.sides:
            learnt = side.learnt
            digest.update(array("i", (len(side.encoded.ids), learnt.start, learnt.stop, *side.encoded.ids)).tobytes())
    name = hashlib.sha256(f"{FORMAT}:{source_hash}:{half}:{digest.hexdigest()}".encode()).hexdigest()
    place = folder / name
    counts = [[len(side.learnt) for side in unit.sides] for unit in units]
    total = sum(map(sum, counts))
    try:
        distributed.by_first(lambda: _verify(place, total))
        values = torch.empty(total)
        if total:
            stored_in([place / TENSORS])[KEY].fill(values)
        flat = np.asarray(values.numpy(), dtype=np.float32)
    except DamagedReference as damage:
        if place.exists():
            progress.tell("reference_refused", reason=str(damage))
        by_unit = log_probs_of(load(), units, Count("reference", len(units), progress))
        flat = np.concatenate([values for sides in by_unit for values in sides] or [np.empty(0, np.float32)])
        with distributed.whole_directory(place) as directory:
            write_tensors(directory / TENSORS, {KEY: torch.from_numpy(flat)})
            if distributed.is_first():
                about = {"format": FORMAT, "tokens": len(flat), "sha256": file_sha256(directory / TENSORS)}
                write_json(directory / ABOUT, about)
        progress.tell("reference_computed", hash=name, tokens=total)
    else:
        progress.tell("reference_read", hash=name, tokens=total)
    parts = iter(np.split(flat, np.cumsum([count for sides in counts for count in sides])[:-1]))
    return Judgements(units, [[next(parts) for _ in sides] for sides in counts])


@torch.no_grad()
def log_probs_of(policy: Policy, units: Sequence[Unit], count: Count | None = None) -> list[list[LogProbs]]:
    """Returns for each unit the log-probabilities of its sides' learnt tokens, each [learnt tokens].

    count: is told of the units that are done.

    Raises:
        OtherVocabulary: the policy has no logits for a token of the units.
    """
    largest = max((max(side.encoded.ids) for unit in units for side in unit.sides), default=0)
    size = policy.network.config.get_text_config().vocab_size
    if largest >= size:
        raise OtherVocabulary(
            f"the tokenizer gives the token {largest}, but the model knows {size}: the policy and its reference must "
            "share one vocabulary"
        )
    groups = [[side.encoded for side in unit.sides] for unit in units]
    budget = GPU_TOKENS if policy.device.type == "cuda" else CPU_TOKENS
    batches = policy.sizes(groups).batches(range(len(units)), budget)
    by_unit: dict[int, list[LogProbs]] = {}
    for batch, _ in distributed.share(batches):
        values = policy.log_probs([groups[unit] for unit in batch]).cpu().numpy()
        counts = [len(side.learnt) for unit in batch for side in units[unit].sides]
        parts = iter(np.split(values, np.cumsum(counts)[:-1]))
        by_unit |= {unit: [next(parts) for _ in units[unit].sides] for unit in batch}
        if count:
            count.add(len(batch) * distributed.size())
    sharding.settle(policy.network)
    by_unit = distributed.gathered(by_unit)
    return [by_unit[unit] for unit in range(len(units))]


def _verify(place: Path, total: int) -> None:
    try:
        about = json.loads((place / ABOUT).read_bytes())
        is_whole = about["sha256"] == file_sha256(place / TENSORS) and about["tokens"] == total
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DamagedReference(f"{place} cannot be read: {error}") from None
    if not is_whole:
        raise DamagedReference(f"{place / TENSORS} is not the file that was written")
