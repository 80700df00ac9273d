"""Evaluates a reward model on a file or a data set of the Hub, in a process of the learning core, and stores a row."""

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from operator import attrgetter
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from annotator.infrastructure import audit
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.storage.store import bring
from rewards.models import Evaluation, RewardModel, Snapshot
from rewards.trainer.trainer_process import command, end_group

HUB = "hub:"
LONGEST_NAME = 100
VALIDATION = "validation"
"""The name of an evaluation on a snapshot's held-out rows."""


def evaluate(model: RewardModel, data: str, *, name: str = "") -> Evaluation:
    """Evaluates the model on `data`, a path or `hub:NAME@SPLIT`, and stores the metrics.

    The same model, name and data replace the metrics of the same row.

    Raises:
        Refusal: the data cannot be read, or the model cannot be loaded.
    """
    if not data.startswith(HUB) and not Path(data).is_file():
        raise Refusal(f"There is no file {data}.", code="evaluation_failed")
    settings.ARTIFACTS.mkdir(parents=True, exist_ok=True)
    # Among the artifacts, which a launcher's machines see as well.
    with tempfile.TemporaryDirectory(prefix=".evaluation-", dir=settings.ARTIFACTS) as folder:
        metrics = measured(model, data, folder=Path(folder))
    return record(model, metrics, name=name or name_of(data))


@transaction.atomic
def record(model: RewardModel, metrics: dict[str, Any], *, name: str) -> Evaluation:
    """Stores the metrics that somebody asked for, and notes it in the audit."""
    digest = metrics["data"]["sha256"]
    row = store(model, name=name, data_hash=digest, metrics=metrics)
    audit.record("model.evaluated", f"model version {model.version}", project=model.project, data=digest)
    return row


def store(model: RewardModel, *, name: str, data_hash: str, metrics: dict[str, Any]) -> Evaluation:
    """Stores the metrics in the one row for this model, name and content of the data."""
    row, _is_new = Evaluation.objects.update_or_create(
        reward_model=model, name=name[:LONGEST_NAME], data_hash=data_hash, defaults={"metrics": metrics}
    )
    return row


@transaction.atomic
def delete(evaluation: Evaluation) -> None:
    """Deletes an evaluation that somebody asked for.

    Raises:
        Refusal: a run judged its model by it.
    """
    model = evaluation.reward_model
    if is_of_a_run(evaluation):
        text = _("A run judged version %(version)s by this evaluation, so it is kept as long as the model is.")
        raise Refusal(text % {"version": model.version}, code="belongs_to_run")
    evaluation.delete()
    details = {"name": evaluation.name, "data": evaluation.data_hash}
    audit.record("evaluation.deleted", f"model version {model.version}", project=model.project, **details)


def is_of_a_run(evaluation: Evaluation) -> bool:
    """Returns whether the evaluation is on the held-out rows of one of the project's snapshots."""
    rows = {"validation.jsonl": evaluation.data_hash}
    snapshots = Snapshot.objects.filter(project=evaluation.reward_model.project_id, manifest__files__contains=rows)
    return evaluation.name == VALIDATION and snapshots.exists()


def newest_by_name(evaluations: Iterable[Evaluation]) -> dict[str, dict[str, Any]]:
    """Returns the metrics of a model's newest evaluation under each name."""
    return {evaluation.name: evaluation.metrics for evaluation in sorted(evaluations, key=attrgetter("pk"))}


def name_of(data: str) -> str:
    """Returns the file's name without its endings, or the data set's name."""
    return data.removeprefix(HUB) if data.startswith(HUB) else Path(data).name.split(".")[0]


def measured(model: RewardModel, data: str, *, folder: Path, beat: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """Returns the metrics of `python -m rewards.learning evaluate`, which runs in a process of its own.

    The learning core imports torch, which takes seconds and does not belong into this process. It works in `folder`;
    like a trainer, it is started by TRAIN_LAUNCHER. `beat` is called every RUN_HEARTBEAT_SECONDS; the process is ended
    when it raises.

    Raises:
        Refusal: the data cannot be read, the model cannot be loaded, or it took longer than RUN_HOURS.
    """
    config = {
        "model": str(bring(model.directory())),
        "data": data if data.startswith(HUB) else str(Path(data).resolve()),
        # With as many processes as its training: a model of which each held a part may fit into no single one.
        "processes": model.run.config.get("processes", 0),
    }
    snapshot = model.run.snapshot
    train = bring(snapshot.directory()) / "train.jsonl" if snapshot else None
    (folder / "config.json").write_text(
        json.dumps(config | {"train": str(train)} if train and train.is_file() else config)
    )
    with (folder / "errors.txt").open("wb") as errors:
        process = subprocess.Popen(
            command("evaluate", folder),
            cwd=settings.BASE_DIR,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        _wait(process, beat)
    finally:
        end_group(process)
    if process.returncode != 0:
        words = (folder / "errors.txt").read_text(errors="replace").strip().splitlines()
        raise Refusal(
            words[-1] if words else f"The evaluation ended with code {process.returncode}.", code="evaluation_failed"
        )
    metrics: dict[str, Any] = json.loads((folder / "metrics.json").read_text())
    return metrics


def _wait(process: "subprocess.Popen[bytes]", beat: Callable[[], None]) -> None:
    end = time.monotonic() + settings.RUN_HOURS * 3600
    while time.monotonic() < end:
        try:
            process.wait(timeout=settings.RUN_HEARTBEAT_SECONDS)
        except subprocess.TimeoutExpired:
            beat()
        else:
            return
    raise Refusal(
        f"The evaluation was ended after {settings.RUN_HOURS:g} hours. Send fewer rows, or ask the operator for a "
        "higher RUN_HOURS.",
        code="evaluation_failed",
    )
