"""Stage: trains the ridge baseline and the fine-tuned candidate on a snapshot, and measures both.

Checkpoints are chosen on a dev part of the train prompts. The validation prompts, by which promotion decides, are
read once, at the end, for both models. If fine-tuning did not improve on the ridge beyond chance, the candidate is the
ridge.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from rewards.learning import distributed
from rewards.learning.answers import Predicted, segment_labels
from rewards.learning.backbones import find_backbone
from rewards.learning.baseline import ENSEMBLE_ROWS, Baseline, ensemble, features_of, fit_baseline, refit_heads
from rewards.learning.chat_templates import RENDERING, template_hash
from rewards.learning.config import (
    TrainConfig,
    backbone_name,
    config_hash,
    read_config,
    reward_weights,
    without_places,
)
from rewards.learning.cross_training import evidence_of
from rewards.learning.data import Floats, Snapshot, read_snapshot, targets_of
from rewards.learning.ensemble import add_ensemble
from rewards.learning.finetune import TuningRun, fine_tune
from rewards.learning.inference import predict_all, start
from rewards.learning.metrics import beyond_chance
from rewards.learning.model import Loaded
from rewards.learning.model_files import FINETUNED, RIDGE, Checkpoint, Manifest, copy_checkpoint, save_checkpoint
from rewards.learning.model_loading import load_backbone
from rewards.learning.objectives import Objective, whole_loss
from rewards.learning.precision import with_precision
from rewards.learning.progress import Progress
from rewards.learning.results import Judged, TrainingContext, training_summary, write_results
from rewards.learning.splits import Part, parts_of, without_texts


def train(directory: Path) -> None:
    """Reads config.json of `directory` and trains; docs/core.md lists what it writes, metrics.json last.

    Called again it returns at once if all is there, and otherwise goes on from checkpoint/ if that is valid.

    Raises:
        BadConfig, NoSuchDevice, NoSuchDepth, NotForEncoders: the configuration cannot be used.
        MissingFile, BadManifest, CorruptFile, BadRow, EmptyPart, OneClass, LeakedPrompt: the snapshot cannot be used.
        MissingBackbone, PickledBackbone, TamperedBackbone, UnknownArchitecture, IncompleteWeights,
            UnrenderableConversation, UnsteadyTemplate, NoSegmentTokens: the backbone cannot be used.
        NothingApart: people compared responses only, and the model reads all of them as the same.
        Diverged, OutOfMemory: the fine-tuning failed.
    """
    if (directory / "metrics.json").is_file() and (directory / "model").is_dir():
        return
    started = time.monotonic()
    config = read_config(TrainConfig, directory / "config.json")
    device = start(config.device, config.threads)
    # The first process reads the texts and the ratings; the others get tokens and answers.
    snapshot = distributed.from_first(
        lambda: read_snapshot(Path(config.snapshot)), sent=lambda read: replace(read, train=(), validation=())
    )
    progress = Progress(directory / "progress.jsonl", silent=not distributed.is_first())
    load = partial(_prepare, config, snapshot, device)
    work, baseline, scores, candidate = _trained(directory, config, snapshot, load, progress, started)
    # The network is gone by now: those of the folds need its room.
    evidence = evidence_of(work, baseline, candidate, load)
    if distributed.is_first():
        write_results(work, baseline, candidate, evidence, scores)
    distributed.leave()


def _trained(
    directory: Path,
    config: TrainConfig,
    snapshot: Snapshot,
    load: Callable[[], Loaded],
    progress: Progress,
    started: float,
) -> tuple[TrainingContext, Baseline, Predicted, Judged]:
    """Returns the run's rows, the baseline with its scores of the validation rows, and the candidate, both stored."""
    # Weights are given for whole responses; where only segments are scored, there are none.
    given = {} if snapshot.by_segments else config.attribute_weights
    learnt = {name: weight for name, weight in given.items() if name not in snapshot.unscored}
    weights = reward_weights(snapshot.attributes, learnt)
    progress.tell("start", config=without_places(config), snapshot=snapshot.content_hash)
    if snapshot.unscored:
        progress.tell("attributes_without_scores", attributes=snapshot.unscored)
    loaded = load()
    manifest = distributed.from_first(lambda: _manifest(config, snapshot, loaded, weights))
    parts = distributed.from_first(
        lambda: parts_of(snapshot, manifest, loaded, config, progress=progress), sent=without_texts
    )
    work = TrainingContext(directory, config, parts, manifest, tuple(weights.values()), progress, started)
    baseline = fit_baseline(
        loaded, work.parts.train(), work.config, work.reward, folder=work.directory, progress=work.progress
    )
    save_checkpoint(work.directory / "baseline", Checkpoint(loaded, work.manifest))
    ridge = baseline.ridge
    work.progress.tell("baseline", layers=baseline.layers, alphas=ridge.alphas, held_out_rmse=ridge.held_out_rmse)
    scores = _scores(work, loaded, work.parts.validation)
    return work, baseline, scores, _candidate(work, loaded, baseline, scores)


def _candidate(work: TrainingContext, loaded: Loaded, baseline: Baseline, scores: Predicted) -> Judged:
    """Trains and stores the candidate: the fine-tuned network where it beats the ridge on the dev prompts beyond
    chance, else the ridge itself.
    """
    fit, dev, config = work.parts.fit, work.parts.dev, work.config
    if dev.tasks:
        # The ridge of all train rows knows the dev labels, by which the step is chosen: a head from it would look
        # better at step 0 than any step after it.
        refit_heads(loaded, baseline, fit, config)
    checkpoint = work.directory / "checkpoint"
    run = TuningRun(config, loaded, fit.rows, dev.rows, work.reward, work.progress, checkpoint, work.identity)
    place = fine_tune(run)
    training = training_summary(fit.rows, loaded, place, config, work.started)
    # Compared with the ridge that would be kept: for each dev prompt it is fitted on all others, dev included.
    ridge_losses = _losses_by_prompt(work, baseline.left_out_dev())
    fine_tuned = _scores(work, loaded, work.parts.validation) if any(place.kept) else None
    losses = None if fine_tuned is None else _losses_by_prompt(work, _scores(work, loaded, dev))
    better = losses is not None and beyond_chance(ridge_losses - losses)
    manifest = replace(work.manifest, kind=FINETUNED if better else RIDGE)
    if better:
        save_checkpoint(work.directory / "model", Checkpoint(loaded, manifest))
        train = work.parts.train()
        features = features_of(loaded, train, config, folder=work.directory, most=ENSEMBLE_ROWS, progress=work.progress)
    else:
        # The ridge stays: the one fitted on all train rows, dev included.
        copy_checkpoint(work.directory / "baseline", work.directory / "model")
        features = baseline.features[:ENSEMBLE_ROWS]
    if distributed.is_first():
        add_ensemble(work.directory / "model", ensemble(baseline, features))
    return Judged(manifest, place, scores if fine_tuned is None or not better else fine_tuned, fine_tuned, training)


def _prepare(config: TrainConfig, snapshot: Snapshot, device: torch.device) -> Loaded:
    torch.manual_seed(config.seed)
    source = find_backbone(config.backbone, source=config.backbone_source)
    loaded = load_backbone(
        source,
        attributes=snapshot.attributes,
        aspects=snapshot.aspects,
        max_length=config.max_length,
        device=device,
        lora_rank=config.lora_rank,
        seed=config.seed,
    )
    return with_precision(loaded, config.precision)


def _manifest(config: TrainConfig, snapshot: Snapshot, loaded: Loaded, weights: dict[str, float]) -> Manifest:
    return Manifest(
        kind=RIDGE,
        attributes=snapshot.attributes,
        attribute_weights=weights,
        means=_means(targets_of(snapshot.train, snapshot.attributes)),
        pooling=loaded.network.pooling,
        backbone=backbone_name(config),
        template=loaded.frame.template,
        template_hash=template_hash(loaded.frame.template),
        max_length=loaded.frame.max_length,
        snapshot=snapshot.content_hash,
        levels=snapshot.levels,
        training={**without_places(config), "config_hash": config_hash(config)},
        aspects=snapshot.aspects,
        aspect_means=_means(segment_labels(snapshot.train, snapshot.aspects)),
        by_segments=snapshot.by_segments,
        rendering=RENDERING,
    )


def _means(labels: Floats) -> tuple[float, ...]:
    """[attributes]: the mean of the labels [rows, attributes]; 0 where nothing is rated."""
    known = np.isfinite(labels)
    means: list[float] = (np.where(known, labels, 0.0).sum(axis=0) / known.sum(axis=0).clip(min=1)).tolist()
    return tuple(means)


def _scores(work: TrainingContext, loaded: Loaded, part: Part) -> Predicted:
    return predict_all(loaded, part.rows.encoded, batch_tokens=work.config.batch_tokens, progress=work.progress)


def _losses_by_prompt(work: TrainingContext, predicted: Predicted) -> Floats:
    """[prompts]: the last stage's loss for each dev prompt that has an answer, that of its segments included.

    The prompts are sorted, so that the losses of two models are paired.
    """
    part, objective = work.parts.dev, Objective(work.config.stages[-1], work.reward)
    rows: dict[str, list[int]] = {}
    for row, prompt in enumerate(part.prompts()):
        rows.setdefault(prompt, []).append(row)
    answers, losses = part.rows.answers, []
    for _, chosen in sorted(rows.items()):
        of_rows = predicted.of_rows(chosen, answers)
        losses.append(
            whole_loss(objective, of_rows, answers.of_rows(chosen), segment_weight=work.config.segment_weight)
        )
    return np.array([loss for loss in losses if np.isfinite(loss)], dtype=np.float64)
