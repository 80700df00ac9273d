"""Stage: predictions against labels on held-out prompts, with what they must be compared to."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rewards.learning.checkpoint import Manifest
from rewards.learning.config import EvaluateConfig, read_config
from rewards.learning.data import EmptyPart, Floats, Task, items_of, read_tasks, targets_of
from rewards.learning.directories import write_json
from rewards.learning.encoding import truncation_of
from rewards.learning.inference import predict
from rewards.learning.measures import attribute_measures, human_ceiling, pairwise, rmse
from rewards.learning.score import load, scored, write_rows


def evaluate(directory: Path) -> None:
    """Reads config.json of `directory`, writes predictions.jsonl and then metrics.json."""
    config = read_config(EvaluateConfig, directory / "config.json")
    tasks = list(read_tasks(Path(config.data)))
    if config.threads:
        torch.set_num_threads(config.threads)
    checkpoint = load(Path(config.model), device=config.device).checkpoint
    if not np.isfinite(targets_of(tasks, checkpoint.manifest.attributes)).any():
        raise EmptyPart(f"{config.data} has no response with a label that the model predicts")
    encoded = [checkpoint.loaded.frame.encode(item) for item in items_of(tasks)]
    predicted = predict(checkpoint.loaded, encoded, batch_tokens=config.batch_tokens)
    write_rows(directory / "predictions.jsonl", prediction_rows(tasks, predicted, checkpoint.manifest))
    metrics = measure(tasks, predicted, checkpoint.manifest)
    write_json(directory / "metrics.json", {**metrics, "truncation": dataclasses.asdict(truncation_of(encoded))})


def measure(tasks: Sequence[Task], predicted: Floats, manifest: Manifest) -> dict[str, Any]:
    """All measures of one model's predictions [responses, attributes] on these tasks."""
    labels = targets_of(tasks, manifest.attributes)
    rewards = (predicted @ [manifest.attribute_weights[name] for name in manifest.attributes]).tolist()
    known = np.isfinite(labels)
    return {
        "attributes": {
            name: attribute_measures(predicted[:, i], labels[:, i], mean=manifest.means[i])
            for i, name in enumerate(manifest.attributes)
        },
        "rmse": rmse(predicted[known], labels[known]),
        "pairwise": pairwise(tasks, rewards, manifest.attribute_weights),
        "human": {name: human_ceiling(tasks, predicted, name, i) for i, name in enumerate(manifest.attributes)},
        "constant": [name for i, name in enumerate(manifest.attributes) if predicted[:, i].std() < 1e-6],
    }


def prediction_rows(tasks: Sequence[Task], predicted: Floats, manifest: Manifest) -> Iterator[dict[str, Any]]:
    """A row per response; `squared_error` sums over its `labels` known labels, for bootstraps over prompts."""
    errors = (predicted - targets_of(tasks, manifest.attributes)) ** 2
    responses = [(task, response) for task in tasks for response in task.responses]
    for (task, response), row, error in zip(responses, predicted.tolist(), errors, strict=True):
        result = scored(dict(zip(manifest.attributes, row, strict=True)), manifest.attribute_weights)
        yield {
            "task": task.id,
            "prompt_hash": task.prompt_hash,
            "id": response.id,
            "scores": result.scores,
            "reward": result.reward,
            "squared_error": float(np.nansum(error)),
            "labels": int(np.isfinite(error).sum()),
        }
