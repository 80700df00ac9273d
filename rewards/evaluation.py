"""Evaluates a reward model on a file or a data set of the Hub, in a process of the learning core, and stores a row."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from operator import attrgetter
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from annotator import audit
from annotator.refusals import Refusal
from rewards.models import Evaluation, RewardModel

HUB = "hub:"
LONGEST_NAME = 100
VALIDATION = "validation"
"""The name of an evaluation on a snapshot's held-out rows."""


class EvaluationFailed(Refusal):
    """The data cannot be read, or the model cannot be loaded; the message says which."""

    code = "evaluation_failed"


def evaluate(model: RewardModel, data: str, *, name: str = "") -> Evaluation:
    """Evaluates the model on `data`, a path or `hub:NAME@SPLIT`, and stores the metrics.

    The same model, name and data replace the metrics of the same row.

    Raises:
        EvaluationFailed: the data cannot be read, or the model cannot be loaded.
    """
    if not data.startswith(HUB) and not Path(data).is_file():
        raise EvaluationFailed(f"There is no file {data}.")
    metrics = measured(model, data)
    digest = metrics["data"]["sha256"]
    with transaction.atomic():
        row = store(model, name=name or name_of(data), data_hash=digest, metrics=metrics)
        audit.record("model.evaluated", f"model version {model.version}", project=model.project, data=digest)
    return row


def store(model: RewardModel, *, name: str, data_hash: str, metrics: dict[str, Any]) -> Evaluation:
    """Stores the metrics in the one row for this model, name and content of the data."""
    row, _ = Evaluation.objects.update_or_create(
        reward_model=model, name=name[:LONGEST_NAME], data_hash=data_hash, defaults={"metrics": metrics}
    )
    return row


def newest_by_name(evaluations: Iterable[Evaluation]) -> dict[str, dict[str, Any]]:
    """Returns the metrics of a model's newest evaluation under each name."""
    return {evaluation.name: evaluation.metrics for evaluation in sorted(evaluations, key=attrgetter("pk"))}


def name_of(data: str) -> str:
    """Returns the file's name without its endings, or the data set's name."""
    return data.removeprefix(HUB) if data.startswith(HUB) else Path(data).name.split(".")[0]


def measured(model: RewardModel, data: str) -> dict[str, Any]:
    """Returns the metrics of `python -m rewards.learning evaluate`, which runs in a process of its own.

    The learning core imports torch, which takes seconds and does not belong into this process.
    """
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(_config(model, data)))
        command = [sys.executable, "-m", "rewards.learning", "evaluate", folder]
        done = subprocess.run(command, cwd=settings.BASE_DIR, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            words = done.stderr.strip().splitlines()
            raise EvaluationFailed(words[-1] if words else f"The evaluation ended with code {done.returncode}.")
        metrics: dict[str, Any] = json.loads((Path(folder) / "metrics.json").read_text())
        return metrics


def _config(model: RewardModel, data: str) -> dict[str, str]:
    """Returns the configuration, with the file of the model's train rows where it exists: they must not judge it."""
    config = {"model": str(model.directory()), "data": data if data.startswith(HUB) else str(Path(data).resolve())}
    snapshot = model.run.snapshot
    train = snapshot.directory() / "train.jsonl" if snapshot else None
    return config | {"train": str(train)} if train and train.is_file() else config
