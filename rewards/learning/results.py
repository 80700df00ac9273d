"""Writes what a training run leaves: predictions, measures, and the model as one reward for other software."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rewards.learning import distributed
from rewards.learning.answers import Predicted, TuningRows
from rewards.learning.atomic_directories import write_json
from rewards.learning.baseline import Baseline, Reward, expected, learning_curve
from rewards.learning.config import TrainConfig, config_hash
from rewards.learning.data import Floats, scales_of
from rewards.learning.evaluate import measure, prediction_rows
from rewards.learning.inference import versions
from rewards.learning.merged_reward import NoStockClass, write_reward
from rewards.learning.metrics import attribute_measures, rmse
from rewards.learning.model import Loaded
from rewards.learning.model_files import FINETUNED, Manifest
from rewards.learning.precision import name_of, trains_in_half
from rewards.learning.progress import Progress
from rewards.learning.resume_point import Place
from rewards.learning.score import write_rows
from rewards.learning.segment_measures import mean_of_segments, measure_segments
from rewards.learning.splits import Parts

CrossFitted = tuple[Floats, Floats]
"""Predictions for train rows by models that have not seen their prompts, and the means of the labels that these saw.

Both are [rows, attributes].
"""


@dataclass(frozen=True)
class TrainingContext:
    """One run: its directory, its configuration and its rows; `reward` [attributes] weighs the scores."""

    directory: Path
    config: TrainConfig
    parts: Parts
    manifest: Manifest
    reward: Reward
    progress: Progress
    started: float

    @property
    def identity(self) -> str:
        """The configuration, the snapshot and the rendering: a checkpoint of others is not resumed."""
        return f"{config_hash(self.config)}:{self.manifest.snapshot}:{self.manifest.rendering}"


@dataclass(frozen=True)
class Judged:
    """The stored candidate, how it was trained, and its scores of the validation rows and their segments.

    `fine_tuned` holds the scores of the fine-tuned network, even if the ridge was kept; None if no step helped.
    """

    manifest: Manifest
    place: Place
    scores: Predicted
    fine_tuned: Predicted | None
    training: dict[str, Any]

    @property
    def is_fine_tuned(self) -> bool:
        """Whether the candidate is the fine-tuned network, not the ridge."""
        return self.manifest.kind == FINETUNED


@dataclass(frozen=True)
class Evidence:
    """What training on parts of the train prompts says: predictions of those left out, and a curve of fine-tuning."""

    crossed: CrossFitted | None
    curve: dict[str, Any] | None = None


def write_results(
    work: TrainingContext, baseline: Baseline, candidate: Judged, evidence: Evidence, scores: Predicted
) -> None:
    """Writes the predictions and the metrics of the run; `scores` are the baseline's of the validation rows.

    metrics.json comes last: where it exists, the run is done.
    """
    tasks, directory = work.parts.validation.tasks, work.directory
    predictions = {
        "baseline_predictions": scores,
        "fine_tuned_predictions": candidate.fine_tuned,
        "predictions": candidate.scores,
    }
    for name, predicted in predictions.items():
        if predicted is not None:
            rows = prediction_rows(tasks, predicted.responses, candidate.manifest, segments=predicted.segments)
            write_rows(directory / f"{name}.jsonl", rows)
    attributes = work.manifest.attributes
    write_rows(directory / "expected.jsonl", expected(baseline, attributes, work.parts.validation, scores.responses))
    if evidence.crossed:
        write_rows(directory / "cross_fitted.jsonl", _cross_fitted_rows(work, evidence.crossed, candidate.manifest))
    try:
        write_reward(work.directory / "model", work.directory / "reward")
    except NoStockClass as reason:
        # The model is whole without: what asks our endpoints or our core for rewards needs no other class.
        work.progress.tell("no_reward", reason=str(reason))
    metrics = _metrics(work, baseline, candidate, evidence, scores)
    work.progress.tell("evaluation", **{name: metrics[name]["rmse"] for name in ("baseline", "candidate", "mean")})
    write_json(directory / "metrics.json", metrics)
    for folder in ("checkpoint", "folds"):
        shutil.rmtree(directory / folder, ignore_errors=True)
    work.progress.tell("done", seconds=candidate.training["seconds"])


def _metrics(
    work: TrainingContext, baseline: Baseline, candidate: Judged, evidence: Evidence, scores: Predicted
) -> dict[str, Any]:
    of_baseline = _measured(work, scores)
    of_network = None if candidate.fine_tuned is None else _measured(work, candidate.fine_tuned)
    answers, manifest = work.parts.validation.rows.answers, work.manifest
    labels = answers.labels
    means = np.broadcast_to(np.array(manifest.means), labels.shape)
    known = np.isfinite(labels)
    scales = scales_of(manifest.attributes, manifest.levels)
    measures = {
        name: attribute_measures(means[:, i], labels[:, i], mean=manifest.means[i], levels=scales[name])
        for i, name in enumerate(manifest.attributes)
    }
    return {
        "baseline": {
            **of_baseline,
            "alphas": baseline.ridge.alphas,
            "layers": baseline.layers,
            **({"segment_alphas": baseline.segments.ridge.alphas} if baseline.segments else {}),
        },
        "fine_tuned": of_network,
        "candidate": {**((candidate.is_fine_tuned and of_network) or of_baseline), "kind": candidate.manifest.kind},
        "mean": {
            "values": manifest.means,
            "attributes": measures,
            "rmse": rmse(means[known], labels[known]) if known.any() else None,
            **mean_of_segments(answers.segments, manifest),
        },
        "learning_curve": learning_curve(baseline, work.config.alphas),
        "fine_tuned_curve": evidence.curve,
        "data": work.parts.counts(),
        "training": candidate.training,
        "seed": work.config.seed,
        "config_hash": config_hash(work.config),
        "versions": versions(),
    }


def _measured(work: TrainingContext, predicted: Predicted) -> dict[str, Any]:
    tasks, manifest = work.parts.validation.tasks, work.manifest
    return {
        **measure(tasks, predicted.responses, manifest),
        **measure_segments(tasks, predicted.segments, manifest),
    }


def _cross_fitted_rows(work: TrainingContext, crossed: CrossFitted, manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Yields a row per train response: what a model that has not seen its prompt predicts, and the mean that it saw."""
    tasks = [task for part in work.parts.train() for task in part.tasks]
    scores, means = crossed
    for row, mean in zip(prediction_rows(tasks, scores, manifest), means.tolist(), strict=True):
        yield row | {"means": dict(zip(manifest.attributes, mean, strict=True))}


def training_summary(
    fit: TuningRows, loaded: Loaded, place: Place, config: TrainConfig, started: float
) -> dict[str, Any]:
    sizes = loaded.sizes(fit.encoded, fit.units)
    return {
        "steps": len(place.losses),
        "best_step": place.best_step,
        "best_steps": dict(zip(config.stages, place.kept, strict=False)),
        "packed": loaded.network.packs,
        "precision": {
            "steps": name_of(trains_in_half(loaded, config.precision)),
            "features_and_scores": name_of(loaded.half),
        },
        "processes": distributed.size(),
        "curve": place.curve,
        "losses": place.losses,
        "seconds": round(time.monotonic() - started, 2),
        "tokens_per_second": round(place.tokens / place.seconds) if place.seconds else None,
        "padding_share": sizes.padding_share(sizes.batches(range(len(fit.units)), config.batch_tokens)),
    }
