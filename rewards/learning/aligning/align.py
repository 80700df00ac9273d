"""Stage: aligns a policy with judged responses by one method, and measures it on prompts that it has not seen."""

from __future__ import annotations

import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from rewards.learning import distributed
from rewards.learning.aligning.align_config import (
    BY_SEGMENT,
    STEERLM,
    AlignConfig,
    file_place,
    public_settings,
    setting_hash,
)
from rewards.learning.aligning.judged_rows import (
    NoRows,
    Row,
    aspects_of,
    attributes_of,
    carve_held_out,
    read_judged,
    require_apart,
)
from rewards.learning.aligning.policy import (
    Policy,
    computes_in_half,
    find_policy,
    finish,
    load_configured,
    policy_hash,
    save_policy,
)
from rewards.learning.aligning.reference import Judgements, with_reference
from rewards.learning.aligning.sampling import (
    Sample,
    answers,
    sampled_log_probs,
    sampled_measures,
    sampled_prompts,
)
from rewards.learning.aligning.scored_segments import normalised
from rewards.learning.aligning.sides import alike_units, units_of, without_alike
from rewards.learning.aligning.steering import requested_levels
from rewards.learning.aligning.training import Run, measure, train_policy, weightless
from rewards.learning.alike import Alike, sentences
from rewards.learning.atomic_directories import write_json
from rewards.learning.chat_templates import RENDERING
from rewards.learning.config import read_config
from rewards.learning.data import file_sha256
from rewards.learning.inference import start, versions
from rewards.learning.model_loading import positions
from rewards.learning.precision import name_of
from rewards.learning.progress import Progress
from rewards.learning.resume_point import Place
from rewards.learning.score import write_rows


@dataclass(frozen=True)
class Rows:
    """The rows that are trained on, and those by which the policy is judged, with a hash of their files."""

    train: list[Row]
    held_out: list[Row]
    content_hash: str

    def parts(self) -> dict[str, list[Row]]:
        """Returns the rows of both parts by the names that they have in the metrics."""
        return {"train": self.train, "held_out": self.held_out}


def align(directory: Path) -> None:
    """Reads config.json of `directory` and aligns its policy; docs/aligning.md lists what it writes, metrics.json last.

    Called again it returns at once if all is there, and otherwise goes on from checkpoint/ if that is valid.

    Raises:
        BadConfig, NoSuchDevice: the configuration cannot be used.
        MissingFile, BadRow, NoRows, LeakedPrompt, RewrittenResponse, UnrenderableConversation: the rows cannot be used.
        MissingPolicy, PickledBackbone, NotALanguageModel, IncompleteWeights, OtherVocabulary: the policy or its
            reference cannot be used.
        Diverged, OutOfMemory: the training failed.
    """
    if (directory / "metrics.json").is_file() and (directory / "policy").is_dir():
        return
    started = time.monotonic()
    config = read_config(AlignConfig, directory / "config.json")
    device = start(config.device, config.threads)
    rows = distributed.from_first(lambda: read_rows(directory, config))
    levels = requested_levels(config, attributes_of(rows.train)) if config.method == STEERLM else {}
    progress = Progress(directory / "progress.jsonl", silent=not distributed.is_first())
    _align(AlignmentContext(directory, config, rows, levels, device, progress, started))
    distributed.leave()


@dataclass(frozen=True)
class AlignmentContext:
    """One run: its directory, its configuration, its rows, and the levels that a steered policy is asked for."""

    directory: Path
    config: AlignConfig
    rows: Rows
    levels: dict[str, int]
    device: torch.device
    progress: Progress
    started: float

    @property
    def half(self) -> bool:
        """Whether passes are computed in bf16."""
        return computes_in_half(self.config, self.device)

    def policy(self, place: str, *, lora_rank: int = 0) -> Policy:
        return load_configured(place, self.config, self.device, lora_rank=lora_rank)


def read_rows(directory: Path, config: AlignConfig) -> Rows:
    """Returns the rows of the configured files.

    Raises:
        MissingFile, BadRow, NoRows, LeakedPrompt: the rows cannot be used.
    """
    places = [file_place(name, directory) for name in (config.data, config.held_out_data) if name]
    files = [read_judged(place, config) for place in places]
    train, held_out = (files[0], files[1]) if len(files) > 1 else carve_held_out(files[0], config.held_out_share)
    if not train:
        raise NoRows("all prompts are held out: give more rows, or lower held_out_share")
    if len(files) > 1:
        require_apart(train, held_out)
    return Rows(train, held_out, ":".join(file_sha256(place) for place in places))


def _align(work: AlignmentContext) -> None:
    config, directory = work.config, work.directory
    source_hash = distributed.from_first(lambda: policy_hash(find_policy(config.policy)))
    # An adapter that has not been trained changes nothing, so the policy before training is its own reference.
    reference_hash = source_hash
    if config.reference:
        reference_hash = distributed.from_first(lambda: policy_hash(find_policy(config.reference)))
    policy = work.policy(config.policy, lora_rank=config.lora_rank)
    train, held_out, alike = _judged(work, policy, reference_hash)
    hashes = {"data": work.rows.content_hash, "policy": source_hash, "reference": reference_hash}
    identity = setting_hash(config, **hashes, rendering=str(RENDERING))
    run = Run(config, policy, train, held_out, work.progress, directory / "checkpoint", identity)
    place = train_policy(run)
    measures = {
        name: measure(policy, part, config, progress=work.progress)
        for name, part in (("train", train), ("held_out", held_out))
    }
    packed = policy.packs
    finish(policy)
    prompts = sampled_prompts(work.rows.held_out or work.rows.train, config, work.levels)
    samples = answers(policy, prompts, config, progress=work.progress)
    policy.try_packing()
    drawn = sampled_log_probs(policy, samples)
    policy.unpack()
    save_policy(directory / "policy", policy, _about(work, source_hash))
    # The reference needs the policy's room.
    del policy, run
    sampled = sampled_measures(
        samples, drawn, lambda: sampled_log_probs(work.policy(work.config.reference or work.config.policy), samples)
    )
    if distributed.is_first():
        write_rows(directory / "samples.jsonl", (_sample_row(sample) for sample in samples))
        training = {**_training(work, place), "packed": packed}
        metrics = {**measures, "sampled": sampled, "data": _counts(work, train, held_out, alike), "training": training}
        about = {"seed": config.seed, "config_hash": identity, "versions": versions()}
        write_json(directory / "metrics.json", {"method": config.method, **metrics, **about})
        shutil.rmtree(directory / "checkpoint", ignore_errors=True)
    work.progress.tell("done", seconds=round(time.monotonic() - work.started, 2))


def _judged(
    work: AlignmentContext, policy: Policy, reference_hash: str
) -> tuple[Judgements, Judgements, dict[str, Alike]]:
    """Returns the train rows and the held-out ones as tokens, with the reference's log-probabilities.

    Pairs whose responses are the same tokens are counted, and left out.
    """
    config, most = work.config, positions(policy.network.config)
    units = {
        name: units_of(rows, policy.frame, config, progress=work.progress) for name, rows in work.rows.parts().items()
    }
    alike = {name: alike_units(of_part, policy.frame, most=most) for name, of_part in units.items()}
    train, held_out = (without_alike(of_part, config) for of_part in units.values())
    if not train:
        raise NoRows(f"there is nothing to learn from: {'; '.join(sentences(alike['train']))}")
    folder = Path(config.reference_folder) if config.reference_folder else work.directory / "reference"
    judged = with_reference(
        [*train, *held_out],
        folder,
        source_hash=reference_hash,
        half=work.half,
        load=lambda: work.policy(config.reference) if config.reference else policy,
        progress=work.progress,
    )
    count = len(train)
    return Judgements(train, judged.reference[:count]), Judgements(held_out, judged.reference[count:]), alike


def _about(work: AlignmentContext, source_hash: str) -> dict[str, Any]:
    """Returns what the stored policy says of itself."""
    config, rows = work.config, work.rows.train
    weights = normalised(config.aspect_weights, aspects_of(rows)) if config.method in BY_SEGMENT else {}
    return {
        "method": config.method,
        "settings": public_settings(config),
        "aspect_weights": weights,
        "attributes": list(attributes_of(rows)),
        "requested": work.levels,
        "policy_hash": source_hash,
        "data_hash": work.rows.content_hash,
    }


def _counts(work: AlignmentContext, train: Judgements, held_out: Judgements, alike: dict[str, Alike]) -> dict[str, Any]:
    """Returns how much data there was, and what of it the token limit took away."""
    return {
        name: {
            "rows": len(rows),
            "prompts": len({row.prompt for row in rows}),
            "tokens": sum(len(side.encoded.ids) for unit in judged.units for side in unit.sides),
            "prompts_cut": sum(side.encoded.prompt_cut > 0 for unit in judged.units for side in unit.sides),
            "responses_cut": sum(side.encoded.response_cut > 0 for unit in judged.units for side in unit.sides),
            "segments": sum(len(side.weights) for unit in judged.units for side in unit.sides)
            if work.config.method in BY_SEGMENT
            else 0,
            "segments_dropped": sum(side.dropped for unit in judged.units for side in unit.sides),
            "pairs_without_weight": weightless(judged.units, work.config.method),
            "alike": asdict(alike[name]),
        }
        for name, rows, judged in (("train", work.rows.train, train), ("held_out", work.rows.held_out, held_out))
    }


def _training(work: AlignmentContext, place: Place) -> dict[str, Any]:
    return {
        "steps": place.step,
        "losses": place.losses,
        "curve": place.curve,
        "precision": name_of(work.half),
        "processes": distributed.size(),
        "seconds": round(time.monotonic() - work.started, 2),
        "tokens_per_second": round(place.tokens / place.seconds) if place.seconds else None,
    }


def _sample_row(sample: Sample) -> dict[str, Any]:
    turns = [{"role": turn.role, "content": turn.content} for turn in sample.conversation]
    return {"conversation": turns, "response": sample.text, "ended": sample.ended}
