"""Stage: a snapshot in; the ridge baseline, the fine-tuned candidate and what both are worth out.

Checkpoints are chosen on a dev part of the train prompts. The validation prompts, by which promotion decides, are
read once, at the end, for both models. A candidate that fine-tuning did not improve beyond chance is the ridge.
"""

from __future__ import annotations

import platform
import shutil
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from rewards.learning.backbones import find_backbone
from rewards.learning.batches import padding_share, token_budget_batches
from rewards.learning.checkpoint import FINETUNED, RIDGE, Checkpoint, Manifest, load_checkpoint, save_checkpoint
from rewards.learning.config import TrainConfig, config_hash, read_config, reward_weights
from rewards.learning.data import (
    Floats,
    Snapshot,
    Task,
    carve_dev,
    items_of,
    prompts_of,
    read_snapshot,
    targets_of,
)
from rewards.learning.directories import write_json
from rewards.learning.encoding import template_hash, truncation_of
from rewards.learning.evaluate import measure, prediction_rows
from rewards.learning.finetune import Rows, Run, fine_tune
from rewards.learning.inference import choose_device, frozen_features, predict
from rewards.learning.measures import attribute_measures, beyond_chance
from rewards.learning.model import Loaded, load_backbone
from rewards.learning.progress import Progress
from rewards.learning.resuming import Place
from rewards.learning.ridge import Ridge, constant_direction, fit_ridge
from rewards.learning.score import write_rows


@dataclass(frozen=True)
class Part:
    """Tasks with what the network reads and should answer, a row per response."""

    tasks: list[Task]
    rows: Rows


def train(directory: Path) -> None:
    """Reads config.json of `directory`; writes progress.jsonl, baseline/, model/, predictions and, last, metrics.json.

    Called again it returns at once if all is there, and otherwise goes on from checkpoint/ if that is valid.
    """
    if (directory / "metrics.json").is_file() and (directory / "model").is_dir():
        return
    started = time.monotonic()
    config = read_config(TrainConfig, directory / "config.json")
    snapshot = read_snapshot(Path(config.snapshot))
    weights = reward_weights(snapshot.attributes, config.attribute_weights)
    progress = Progress(directory / "progress.jsonl")
    progress.tell("start", config=asdict(config), snapshot=snapshot.content_hash)
    loaded = _prepare(config, snapshot)
    manifest = _manifest(config, snapshot, loaded, weights)

    fit_tasks, dev_tasks = _divide(snapshot, config.dev_share)
    fit, dev, validation = (_part(tasks, snapshot, loaded) for tasks in (fit_tasks, dev_tasks, [*snapshot.validation]))
    features = _features(loaded, fit, dev, config)
    baseline = _fit_head(loaded, features, [fit, dev], config)
    save_checkpoint(directory / "baseline", Checkpoint(loaded, manifest))
    baseline_scores = predict(loaded, validation.rows.encoded, batch_tokens=config.batch_tokens)
    progress.tell("baseline", alphas=baseline.alphas, held_out_rmse=baseline.held_out_rmse)

    if dev.tasks:
        _fit_head(loaded, features[: len(fit.rows.encoded)], [fit], config)
    identity = f"{config_hash(config)}:{snapshot.content_hash}"
    before = _errors_by_prompt(loaded, dev, config)
    place = fine_tune(Run(config, loaded, fit.rows, dev.rows, progress, directory / "checkpoint", identity))
    if place.best_step and not beyond_chance(before - _errors_by_prompt(loaded, dev, config)):
        place.best_step = 0
    if place.best_step == 0:
        # The ridge stays: the one fitted on all train rows, dev included.
        loaded = load_checkpoint(directory / "baseline", device=loaded.device).loaded
    manifest = replace(manifest, kind=FINETUNED if place.best_step else RIDGE)
    save_checkpoint(directory / "model", Checkpoint(loaded, manifest))
    candidate_scores = baseline_scores
    if place.best_step:
        candidate_scores = predict(loaded, validation.rows.encoded, batch_tokens=config.batch_tokens)

    for name, scores in (("baseline_predictions", baseline_scores), ("predictions", candidate_scores)):
        write_rows(directory / f"{name}.jsonl", prediction_rows(validation.tasks, scores, manifest))
    metrics = {
        "baseline": {**measure(validation.tasks, baseline_scores, manifest), "alphas": baseline.alphas},
        "candidate": {**measure(validation.tasks, candidate_scores, manifest), "kind": manifest.kind},
        "mean": _mean_predictor(validation, manifest),
        "data": _counts(fit, dev, validation),
        "training": _training(fit, place, config, time.monotonic() - started),
        **_provenance(config),
    }
    _finish(directory, metrics, progress)


def _finish(directory: Path, metrics: dict[str, Any], progress: Progress) -> None:
    """metrics.json comes last: where it is, the run is done."""
    baseline, candidate, mean = (metrics[name]["rmse"] for name in ("baseline", "candidate", "mean"))
    progress.tell("evaluation", baseline=baseline, candidate=candidate, mean=mean)
    write_json(directory / "metrics.json", metrics)
    shutil.rmtree(directory / "checkpoint", ignore_errors=True)
    progress.tell("done", seconds=metrics["training"]["seconds"])


def _prepare(config: TrainConfig, snapshot: Snapshot) -> Loaded:
    if config.threads:
        torch.set_num_threads(config.threads)
    torch.manual_seed(config.seed)
    loaded = load_backbone(find_backbone(config.backbone), attributes=snapshot.attributes, max_length=config.max_length)
    loaded.network.to(choose_device(config.device))
    return loaded


def _manifest(config: TrainConfig, snapshot: Snapshot, loaded: Loaded, weights: dict[str, float]) -> Manifest:
    return Manifest(
        kind=RIDGE,
        attributes=snapshot.attributes,
        attribute_weights=weights,
        means=tuple(np.nanmean(targets_of(snapshot.train, snapshot.attributes), axis=0).tolist()),
        pooling=loaded.network.pooling,
        backbone=config.backbone,
        template=loaded.frame.template,
        template_hash=template_hash(loaded.frame.template),
        max_length=loaded.frame.max_length,
        snapshot=snapshot.content_hash,
        training={**asdict(config), "config_hash": config_hash(config)},
    )


def _divide(snapshot: Snapshot, dev_share: float) -> tuple[list[Task], list[Task]]:
    """(fit, dev); no dev where the fit rows would lack an attribute, and then the ridge is the candidate."""
    fit, dev = carve_dev(snapshot.train, dev_share)
    if not np.isfinite(targets_of(fit, snapshot.attributes)).any(axis=0).all():
        return [*snapshot.train], []
    return fit, dev


def _part(tasks: list[Task], snapshot: Snapshot, loaded: Loaded) -> Part:
    encoded = [loaded.frame.encode(item) for item in items_of(tasks)]
    return Part(tasks, Rows(encoded, targets_of(tasks, snapshot.attributes)))


def _features(loaded: Loaded, fit: Part, dev: Part, config: TrainConfig) -> Floats:
    return frozen_features(loaded, [*fit.rows.encoded, *dev.rows.encoded], batch_tokens=config.batch_tokens)


def _fit_head(loaded: Loaded, features: Floats, parts: list[Part], config: TrainConfig) -> Ridge:
    """Puts the ridge of these rows into the network's head."""
    targets = np.concatenate([part.rows.targets for part in parts])
    prompts = [prompt for part in parts for prompt in prompts_of(part.tasks)]
    ridge = fit_ridge(features, targets, prompts, alphas=config.alphas, blocks=loaded.network.blocks)
    weight, bias, constant = map(torch.from_numpy, (ridge.weight, ridge.bias, constant_direction(features)))
    loaded.network.set_head(weight, bias, constant)
    return ridge


def _errors_by_prompt(loaded: Loaded, part: Part, config: TrainConfig) -> Floats:
    """The mean squared error of each of the part's prompts [prompts]."""
    if not part.tasks:
        return np.zeros(0)
    errors = (predict(loaded, part.rows.encoded, batch_tokens=config.batch_tokens) - part.rows.targets) ** 2
    prompts = np.array(prompts_of(part.tasks))
    return np.array([np.nanmean(errors[prompts == prompt]) for prompt in sorted(set(prompts))])


def _mean_predictor(validation: Part, manifest: Manifest) -> dict[str, Any]:
    labels = validation.rows.targets
    means = np.broadcast_to(np.array(manifest.means), labels.shape)
    measures = {
        name: attribute_measures(means[:, i], labels[:, i], mean=manifest.means[i])
        for i, name in enumerate(manifest.attributes)
    }
    return {"values": manifest.means, "attributes": measures, "rmse": float(np.sqrt(np.nanmean((means - labels) ** 2)))}


def _counts(fit: Part, dev: Part, validation: Part) -> dict[str, Any]:
    parts = {"fit": fit, "dev": dev, "validation": validation}
    return {
        name: {
            "tasks": len(part.tasks),
            "labels": int(np.isfinite(part.rows.targets).sum()),
            "tokens": sum(part.rows.lengths),
            "truncation": asdict(truncation_of(part.rows.encoded)),
        }
        for name, part in parts.items()
    }


def _training(fit: Part, place: Place, config: TrainConfig, seconds: float) -> dict[str, Any]:
    lengths = fit.rows.lengths
    return {
        "steps": place.step,
        "best_step": place.best_step,
        "curve": place.curve,
        "losses": place.losses,
        "seconds": round(seconds, 2),
        "tokens_per_second": round(place.tokens / place.seconds) if place.seconds else None,
        "padding_share": padding_share(lengths, token_budget_batches(lengths, config.batch_tokens)),
    }


def _provenance(config: TrainConfig) -> dict[str, Any]:
    versions = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "numpy": np.__version__,
    }
    return {"seed": config.seed, "config_hash": config_hash(config), "versions": versions}
