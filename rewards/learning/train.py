"""Stage: a snapshot in; the ridge baseline, the fine-tuned candidate and what both are worth out.

Checkpoints are chosen on a dev part of the train prompts. The validation prompts, by which promotion decides, are
read once, at the end, for both models. A candidate that fine-tuning did not improve beyond chance is the ridge.
"""

from __future__ import annotations

import platform
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from rewards.learning import curve, distributed
from rewards.learning.backbones import find_backbone
from rewards.learning.checkpoint import FINETUNED, RIDGE, Checkpoint, Manifest, load_checkpoint, save_checkpoint
from rewards.learning.config import REGRESSION, TrainConfig, config_hash, read_config, reward_weights
from rewards.learning.data import (
    Floats,
    Snapshot,
    Task,
    carve_dev,
    has_labels,
    items_of,
    prompts_of,
    read_snapshot,
    targets_of,
)
from rewards.learning.directories import write_json
from rewards.learning.encoding import template_hash, truncation_of
from rewards.learning.ensemble import Ensemble, add_ensemble, fit_ensemble
from rewards.learning.evaluate import measure, prediction_rows
from rewards.learning.expected import cross_fitted, expected_rows, telling
from rewards.learning.finetune import Rows, Run, fine_tune
from rewards.learning.inference import choose_device, frozen_features, predict
from rewards.learning.measures import attribute_measures, beyond_chance, rmse
from rewards.learning.model import Loaded, load_backbone
from rewards.learning.objectives import Answers, Objective, answers_of
from rewards.learning.progress import Progress
from rewards.learning.resuming import Place
from rewards.learning.ridge import Ridge, constant_direction, fit_ridge
from rewards.learning.score import write_rows

PLAIN = (REGRESSION,)
ENSEMBLE_ROWS = 4_096
"""So many train rows are enough to tell how sure a model is; for large models each costs a forward pass."""
Reward = tuple[float, ...]


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
    device = distributed.join(choose_device(config.device))
    snapshot = read_snapshot(Path(config.snapshot))
    weights = reward_weights(snapshot.attributes, config.attribute_weights)
    progress = Progress(directory / "progress.jsonl", silent=not distributed.is_first())
    progress.tell("start", config=asdict(config), snapshot=snapshot.content_hash)
    loaded = _prepare(config, snapshot, device)
    manifest = _manifest(config, snapshot, loaded, weights)

    fit_tasks, dev_tasks = _divide(snapshot, config.dev_share)
    parts = (fit_tasks, dev_tasks, [*snapshot.validation])
    fit, dev, validation = (_part(tasks, manifest, loaded, config) for tasks in parts)
    features = _features(loaded, fit, dev, config)
    reward = tuple(weights.values())
    baseline = _fit_head(loaded, features, [fit, dev], config, reward)
    save_checkpoint(directory / "baseline", Checkpoint(loaded, manifest))
    baseline_scores = predict(loaded, validation.rows.encoded, batch_tokens=config.batch_tokens)
    progress.tell("baseline", alphas=baseline.alphas, held_out_rmse=baseline.held_out_rmse)

    if dev.tasks:
        _fit_head(loaded, features[: len(fit.rows.encoded)], [fit], config, reward)
    identity = f"{config_hash(config)}:{snapshot.content_hash}"
    before = _losses_by_prompt(loaded, dev, config, reward)
    place = fine_tune(Run(config, loaded, fit.rows, dev.rows, reward, progress, directory / "checkpoint", identity))
    better = any(place.kept) and beyond_chance(before - _losses_by_prompt(loaded, dev, config, reward))
    if not better:
        # The ridge stays: the one fitted on all train rows, dev included.
        loaded = load_checkpoint(directory / "baseline", device=loaded.device).loaded
    manifest = replace(manifest, kind=FINETUNED if better else RIDGE)
    save_checkpoint(directory / "model", Checkpoint(loaded, manifest))
    candidate_scores = baseline_scores
    if better:
        candidate_scores = predict(loaded, validation.rows.encoded, batch_tokens=config.batch_tokens)
    if distributed.size() == 1:  # a sharded network gives no features
        read = _features(loaded, fit, dev, config, most=ENSEMBLE_ROWS) if better else features[:ENSEMBLE_ROWS]
        add_ensemble(
            directory / "model", _ensemble(loaded, read, [fit, dev], baseline, reward=reward, seed=config.seed)
        )

    metrics = {
        "baseline": {**measure(validation.tasks, baseline_scores, manifest), "alphas": baseline.alphas},
        "candidate": {**measure(validation.tasks, candidate_scores, manifest), "kind": manifest.kind},
        "mean": _mean_predictor(validation, manifest),
        "data": _counts(fit, dev, validation),
        "training": _training(fit, loaded, place, config, time.monotonic() - started),
        **_provenance(config),
    }
    known = _Known(snapshot.attributes, features, [fit, dev], baseline, loaded.network.blocks, reward, config.seed)
    metrics["learning_curve"] = _learning_curve(known) if distributed.is_first() else None
    predictions = {"baseline_predictions": baseline_scores, "predictions": candidate_scores}
    if distributed.is_first():
        for name, scores in predictions.items():
            write_rows(directory / f"{name}.jsonl", prediction_rows(validation.tasks, scores, manifest))
        write_rows(directory / "expected.jsonl", _expected(known, validation, baseline_scores))
        _finish(directory, metrics, progress)
    distributed.leave()


def _finish(directory: Path, metrics: dict[str, Any], progress: Progress) -> None:
    """metrics.json comes last: where it is, the run is done."""
    baseline, candidate, mean = (metrics[name]["rmse"] for name in ("baseline", "candidate", "mean"))
    progress.tell("evaluation", baseline=baseline, candidate=candidate, mean=mean)
    write_json(directory / "metrics.json", metrics)
    shutil.rmtree(directory / "checkpoint", ignore_errors=True)
    progress.tell("done", seconds=metrics["training"]["seconds"])


def _prepare(config: TrainConfig, snapshot: Snapshot, device: torch.device) -> Loaded:
    if config.threads:
        torch.set_num_threads(config.threads)
    torch.manual_seed(config.seed)
    loaded = load_backbone(find_backbone(config.backbone), attributes=snapshot.attributes, max_length=config.max_length)
    loaded.network.to(device)
    return loaded


def _manifest(config: TrainConfig, snapshot: Snapshot, loaded: Loaded, weights: dict[str, float]) -> Manifest:
    return Manifest(
        kind=RIDGE,
        attributes=snapshot.attributes,
        attribute_weights=weights,
        means=_means(targets_of(snapshot.train, snapshot.attributes)),
        pooling=loaded.network.pooling,
        backbone=config.backbone,
        template=loaded.frame.template,
        template_hash=template_hash(loaded.frame.template),
        max_length=loaded.frame.max_length,
        snapshot=snapshot.content_hash,
        training={**asdict(config), "config_hash": config_hash(config)},
    )


def _means(labels: Floats) -> tuple[float, ...]:
    """Per attribute; 0 where nothing is rated."""
    known = np.isfinite(labels)
    means: list[float] = (np.where(known, labels, 0.0).sum(axis=0) / known.sum(axis=0).clip(min=1)).tolist()
    return tuple(means)


def _divide(snapshot: Snapshot, dev_share: float) -> tuple[list[Task], list[Task]]:
    """(fit, dev); no dev where the fit rows would lack an attribute, and then the ridge is the candidate."""
    fit, dev = carve_dev(snapshot.train, dev_share)
    if (
        has_labels(snapshot.train, snapshot.attributes)
        and not np.isfinite(targets_of(fit, snapshot.attributes)).any(axis=0).all()
    ):
        return [*snapshot.train], []
    return fit, dev


def _part(tasks: list[Task], manifest: Manifest, loaded: Loaded, config: TrainConfig) -> Part:
    encoded = [loaded.frame.encode(item) for item in items_of(tasks)]
    answers = answers_of(
        tasks,
        manifest.attributes,
        reward=manifest.attribute_weights,
        rounded=config.targets == "label",
        by_agreement=config.weight_by_agreement,
    )
    return Part(tasks, Rows(encoded, answers, _units(tasks, together=loaded.network.packs or config.stages != PLAIN)))


def _units(tasks: list[Task], *, together: bool) -> list[list[int]]:
    """A task's rows stay together where they are compared, or share a pass over their prompt."""
    rows = iter(range(sum(len(task.responses) for task in tasks)))
    units = [[next(rows) for _ in task.responses] for task in tasks]
    return units if together else [[row] for unit in units for row in unit]


def _features(loaded: Loaded, fit: Part, dev: Part, config: TrainConfig, *, most: int | None = None) -> Floats:
    """[rows, features] of the train rows, the first `most` of them."""
    return frozen_features(loaded, [*fit.rows.encoded, *dev.rows.encoded][:most], batch_tokens=config.batch_tokens)


def _ensemble(
    loaded: Loaded, features: Floats, parts: list[Part], baseline: Ridge, *, reward: Reward, seed: int
) -> Ensemble:
    """Heads that say how sure the model is, with the baseline's penalties, on the rows that there are features of."""
    targets = np.concatenate([ridge_targets(part.rows.answers, reward) for part in parts])[: len(features)]
    prompts = [prompt for part in parts for prompt in prompts_of(part.tasks)][: len(features)]
    return fit_ensemble(features, targets, prompts, alphas=baseline.alphas, blocks=loaded.network.blocks, seed=seed)


def _fit_head(loaded: Loaded, features: Floats, parts: list[Part], config: TrainConfig, reward: Reward) -> Ridge:
    """Puts the ridge of these rows into the network's head."""
    targets = np.concatenate([ridge_targets(part.rows.answers, reward) for part in parts])
    prompts = [prompt for part in parts for prompt in prompts_of(part.tasks)]
    ridge = fit_ridge(features, targets, prompts, alphas=config.alphas, blocks=loaded.network.blocks)
    weight, bias, constant = map(torch.from_numpy, (ridge.weight, ridge.bias, constant_direction(features)))
    loaded.network.set_head(weight, bias, constant)
    return ridge


def ridge_targets(answers: Answers, reward: Reward) -> Floats:
    """[rows, attributes]: the labels; where nothing is rated, 1 for a preferred response and -1 for the other one."""
    if np.isfinite(answers.labels).any():
        return answers.labels
    targets = np.full(len(answers.labels), np.nan)
    targets[answers.pairs[:, 0]], targets[answers.pairs[:, 1]] = 1.0, -1.0
    return targets[:, None] * np.sign(reward)


@dataclass(frozen=True)
class _Known:
    """All train rows as the baseline saw them, and the ridge that it fitted."""

    attributes: tuple[str, ...]
    features: Floats
    parts: list[Part]
    ridge: Ridge
    blocks: Sequence[int]
    reward: Reward
    seed: int

    def labels(self) -> Floats:
        return np.concatenate([part.rows.answers.labels for part in self.parts])

    def prompts(self) -> list[str]:
        return [prompt for part in self.parts for prompt in prompts_of(part.tasks)]

    def pairs(self) -> list[tuple[int, int]]:
        start, pairs = 0, []
        for part in self.parts:
            pairs += [(start + int(good), start + int(bad)) for good, bad in part.rows.answers.pairs]
            start += len(part.rows.encoded)
        return pairs


def _learning_curve(known: _Known) -> dict[str, Any] | None:
    rows = curve.Rows(known.features, known.labels(), known.prompts(), known.reward, known.pairs())
    return curve.learning_curve(rows, alphas=known.ridge.alphas, blocks=known.blocks, seed=known.seed)


def _expected(known: _Known, validation: Part, scores: Floats) -> Iterator[dict[str, Any]]:
    """What is expected of every labelled response by a ridge that has not seen its label; nothing without labels."""
    labels, prompts = known.labels(), known.prompts()
    if not np.isfinite(labels).any() or len(set(prompts)) < 2:
        return
    fitted = cross_fitted(
        known.features, labels, prompts, alphas=known.ridge.alphas, blocks=known.blocks, seed=known.seed
    )
    told = telling(fitted, labels)
    train = [item.id for part in known.parts for item in items_of(part.tasks)]
    yield from expected_rows(train, fitted, known.attributes, told=told)
    yield from expected_rows([item.id for item in items_of(validation.tasks)], scores, known.attributes, told=told)


def _losses_by_prompt(loaded: Loaded, part: Part, config: TrainConfig, reward: Reward) -> Floats:
    """[prompts]: what the last stage lowers, of each of the part's prompts that has an answer."""
    if not part.tasks:
        return np.zeros(0)
    objective = Objective(config.stages[-1], reward)
    predicted = predict(loaded, part.rows.encoded, batch_tokens=config.batch_tokens)
    prompts = np.array(prompts_of(part.tasks))
    rows = (np.flatnonzero(prompts == prompt) for prompt in sorted(set(prompts)))
    losses = [objective.total(predicted[of], part.rows.answers.of_rows(of.tolist())) for of in rows]
    return np.array([loss for loss in losses if np.isfinite(loss)], dtype=np.float64)


def _mean_predictor(validation: Part, manifest: Manifest) -> dict[str, Any]:
    labels = validation.rows.answers.labels
    means = np.broadcast_to(np.array(manifest.means), labels.shape)
    known = np.isfinite(labels)
    measures = {
        name: attribute_measures(means[:, i], labels[:, i], mean=manifest.means[i])
        for i, name in enumerate(manifest.attributes)
    }
    return {
        "values": manifest.means,
        "attributes": measures,
        "rmse": rmse(means[known], labels[known]) if known.any() else None,
    }


def _counts(fit: Part, dev: Part, validation: Part) -> dict[str, Any]:
    parts = {"fit": fit, "dev": dev, "validation": validation}
    return {
        name: {
            "tasks": len(part.tasks),
            "labels": int(np.isfinite(part.rows.answers.labels).sum()),
            "pairs": len(part.rows.answers.pairs),
            "tokens": sum(part.rows.lengths),
            "truncation": asdict(truncation_of(part.rows.encoded)),
        }
        for name, part in parts.items()
    }


def _training(fit: Part, loaded: Loaded, place: Place, config: TrainConfig, seconds: float) -> dict[str, Any]:
    sizes = loaded.sizes(fit.rows.encoded, fit.rows.units)
    return {
        "steps": len(place.losses),
        "best_step": place.best_step,
        "best_steps": dict(zip(config.stages, place.kept, strict=False)),
        "packed": loaded.network.packs,
        "processes": distributed.size(),
        "curve": place.curve,
        "losses": place.losses,
        "seconds": round(seconds, 2),
        "tokens_per_second": round(place.tokens / place.seconds) if place.seconds else None,
        "padding_share": sizes.padding_share(sizes.batches(range(len(fit.rows.units)), config.batch_tokens)),
    }


def _provenance(config: TrainConfig) -> dict[str, Any]:
    versions = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "numpy": np.__version__,
    }
    return {"seed": config.seed, "config_hash": config_hash(config), "versions": versions}
