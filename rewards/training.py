"""One claimed run from snapshot to verdict: supervises the trainer's process, registers and judges the model."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from annotator import workers
from annotator.models import Project
from annotator.refusals import Refusal
from rewards import promotion, retraining, snapshots
from rewards.models import Evaluation, RewardModel, RunState, Snapshot, TrainingRun

LOG_TAIL = 8_000
LOSSES_KEPT = 500
GRACE_SECONDS = 10


class TrainerFailed(Refusal):
    """The trainer's process ended without a model; the message is its last word."""

    code = "trainer_failed"


def carry_out(run: TrainingRun) -> RewardModel | None:
    """Takes a claimed run to its end. Every write is fenced by the attempt.

    Raises:
        Refusal: the run cannot succeed; LostRun: it is not ours any more.
    """
    snapshot = run.snapshot or snapshots.take(run.project, now=timezone.now())
    retraining.write(run, snapshot=snapshot, state=RunState.TRAINING, code_version=code_version())
    folder = _prepared(run, snapshot)
    _supervise(run, "train", folder)
    retraining.write(run, state=RunState.EVALUATING, heartbeat_at=timezone.now())
    metrics = json.loads((folder / "metrics.json").read_text())
    verdict = _judge(run, snapshot, folder, metrics)
    retraining.write(run, state=RunState.AWAITING_PROMOTION, metrics=metrics, verdict=verdict.as_json())
    return _register(run, snapshot, metrics, verdict)


def code_version() -> str:
    return str(settings.SPECTACULAR_SETTINGS["VERSION"])


def _prepared(run: TrainingRun, snapshot: Snapshot) -> Path:
    folder = run.directory()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(retraining.snapshot_of(run, snapshot), indent=2))
    return folder


# The trainer's process -------------------------------------------------------------------------------------


def _supervise(run: TrainingRun, verb: str, folder: Path) -> None:
    """Runs `python -m rewards.learning VERB` in a process group of its own, with a heartbeat on the run's row."""
    log = folder / f"{verb}.log"
    with log.open("ab") as output:
        start = output.tell()
        process = subprocess.Popen(
            [sys.executable, "-m", "rewards.learning", verb, str(folder)],
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            cwd=settings.BASE_DIR,
        )
    try:
        _wait(run, process, folder)
    finally:
        _stop(process)
    tail = _tail(log, start)
    retraining.write(run, log=tail, **_progress(folder))
    if process.returncode != 0:
        raise TrainerFailed(_last_word(process.returncode, tail))


def _wait(run: TrainingRun, process: "subprocess.Popen[bytes]", folder: Path) -> None:
    while True:
        try:
            process.wait(timeout=settings.RUN_HEARTBEAT_SECONDS)
            return
        except subprocess.TimeoutExpired:
            if workers.stopping.is_set():
                raise retraining.PutDown(f"the worker stops, run {run.pk} waits for the next") from None
            retraining.write(run, heartbeat_at=timezone.now(), **_progress(folder))


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """Ends the whole process group, politely first; nothing to do where it has ended by itself."""
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(timeout=GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _progress(folder: Path) -> dict[str, Any]:
    """The newest event and the curve of losses, from the lines the trainer appends."""
    path = folder / "progress.jsonl"
    if not path.exists():
        return {}
    events = [event for line in path.read_text(errors="replace").splitlines() if (event := _event(line))]
    losses = [event for event in events if "loss" in event or "validation_loss" in event]
    stride = max(1, len(losses) // LOSSES_KEPT)
    return {"progress": events[-1] if events else {}, "losses": losses[::stride]}


def _event(line: str) -> dict[str, Any] | None:
    """A line may be half-written while we read."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None


def _tail(log: Path, start: int) -> str:
    size = log.stat().st_size
    with log.open("rb") as file:
        file.seek(max(start, size - LOG_TAIL))
        return file.read().decode(errors="replace").replace("\x00", "")


def _last_word(code: int, tail: str) -> str:
    if code == -signal.SIGKILL:
        return "The trainer was killed (signal 9): perhaps out of memory. Try a smaller batch_tokens."
    if code < 0:
        return f"The trainer was ended by signal {-code} ({signal.Signals(-code).name})."
    words = [line for line in tail.splitlines() if line.strip() and not line.startswith("{")]
    return f"The trainer ended with code {code}: {words[-1] if words else 'it said nothing'}"


# The verdict -----------------------------------------------------------------------------------------------


def _judge(run: TrainingRun, snapshot: Snapshot, folder: Path, metrics: Mapping[str, Any]) -> promotion.Verdict:
    """The candidate against the champion, or against the mean where there is none, on the snapshot's held-out rows."""
    rows = _json_lines(snapshot.directory() / "validation.jsonl")
    candidate = promotion.held_out(rows, _predictions(folder / "predictions.jsonl"))
    means = dict(zip(snapshot.manifest["attributes"], metrics["mean"]["values"], strict=True))
    every = {response["id"]: means for row in rows for response in row["responses"]}
    champion = RewardModel.objects.filter(project=run.project, is_champion=True).first()
    judged = _champion_predictions(run, champion, snapshot, folder) if champion else None
    return promotion.decide(
        candidate,
        promotion.held_out(rows, judged) if judged else None,
        promotion.held_out(rows, every),
        seed=run.seed,
    )


def _champion_predictions(
    run: TrainingRun, champion: RewardModel, snapshot: Snapshot, folder: Path
) -> dict[str, dict[str, float]]:
    work = folder / "champion"
    work.mkdir(exist_ok=True)
    config = {"model": str(champion.directory()), "data": str(snapshot.directory() / "validation.jsonl")}
    (work / "config.json").write_text(json.dumps(config))
    _supervise(run, "evaluate", work)
    return _predictions(work / "predictions.jsonl")


def _json_lines(path: Path) -> list[dict[str, Any]]:
    with path.open() as file:
        return [json.loads(line) for line in file]


def _predictions(path: Path) -> dict[str, dict[str, float]]:
    return {row["id"]: row["scores"] for row in _json_lines(path)}


@transaction.atomic
def _register(
    run: TrainingRun, snapshot: Snapshot, metrics: dict[str, Any], verdict: promotion.Verdict
) -> RewardModel | None:
    """The model's row, its evaluation and, by the verdict, its promotion: all or nothing, once a run."""
    now = timezone.now()
    state = RunState.PROMOTED if verdict.promote else RunState.REJECTED
    retraining.write(run, state=state, finished_at=now)
    Project.objects.select_for_update().get(pk=run.project_id)
    manifest = json.loads((run.directory() / "model" / "reward_model.json").read_text())
    latest = RewardModel.objects.filter(project=run.project).order_by("-version").first()
    model = RewardModel.objects.create(
        project=run.project,
        run=run,
        version=latest.version + 1 if latest else 1,
        path=f"runs/{run.pk}/model",
        attributes=manifest["attributes"],
        attribute_weights=manifest["attribute_weights"],
        manifest=manifest,
    )
    Evaluation.objects.create(
        reward_model=model,
        name="validation",
        data_hash=snapshot.manifest["files"]["validation.jsonl"],
        metrics=metrics["candidate"],
    )
    if verdict.promote:
        promotion.promote(model, now=now)
    shutil.rmtree(run.directory() / "checkpoint", ignore_errors=True)
    return model
