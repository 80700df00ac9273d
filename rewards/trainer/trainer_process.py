"""Supervises the trainer's process: starts it in a group of its own, watches it, stops it, and explains its end."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings

from annotator.infrastructure import jobs
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.stopping import stopping
from rewards.models import TrainingRun
from rewards.trainer import owned_runs
from rewards.trainer.mirroring import mirrored

PROGRAMS = {"answer": ("rewards.learning.aligning.answering",)}
"""What does the work that is no stage of the learning core's command."""
LOG_TAIL = 8_000
LOSSES_KEPT = 500
GRACE_SECONDS = 10
REFUSED, TERMINATED = 2, 143
FULL_BELOW_BYTES = 1 << 20
FULL_SAYS = ("No space left on device", "Disk quota exceeded", "File too large")


class TrainerFailed(Refusal):
    """The trainer's process ended without a model; the message says why."""

    code = "trainer_failed"


class TookTooLong(Refusal):
    """The run has worked for as long as it may."""

    code = "took_too_long"


def supervise(run: TrainingRun, verb: str, folder: Path) -> None:
    """Runs `python -m rewards.learning VERB`, or a program, in a process group of its own, with a heartbeat on the row.

    VERB is the stage function of that name, such as `rewards.learning.train.train`. With TRAIN_LAUNCHER, the operator's
    command runs it, perhaps on other machines that see the same folder.

    Raises:
        TrainerFailed, TookTooLong: the run has failed.
        Postponed: the run goes on later.
        LostRun: the run belongs to another attempt, or was cancelled.
    """
    log, before = folder / f"{verb}.log", run.log
    with log.open("ab") as output:
        start = output.tell()
        process = subprocess.Popen(
            command(verb, folder),
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            # In a group of its own, signals to the worker's group, like Ctrl-C, miss the trainer: this process ends it.
            start_new_session=True,
            cwd=settings.BASE_DIR,
        )
    with mirrored(run):
        try:
            _wait(run, process, folder, lambda: before + _tail(log, start))
        finally:
            end_group(process)
    tail = _tail(log, start)
    # Appended, as the champion's evaluation follows the trainer in the same run.
    owned_runs.write(run, log=before + tail, **_progress(folder))
    # A kill by the system, for memory or a restart, may not happen again; on the last attempt it counts as a failure.
    if process.returncode == -signal.SIGKILL and run.attempt < settings.RUN_ATTEMPTS:
        raise owned_runs.TrainerKilled("The trainer was killed (signal 9). The run continues from its last checkpoint.")
    if process.returncode != 0:
        raise TrainerFailed(_last_word(process.returncode, tail, folder))


def command(verb: str, folder: Path) -> list[str]:
    """Returns the words of the command that does the work: the trainer's own, or the launcher's around it.

    Raises:
        TrainerFailed: the launcher's program is not there.
    """
    trainer = [sys.executable, "-m", *PROGRAMS.get(verb, ("rewards.learning", verb)), str(folder)]
    launcher = settings.TRAIN_LAUNCHER
    if not launcher:
        return trainer
    if shutil.which(launcher[0]) is None:
        raise TrainerFailed(f"This worker cannot run {launcher[0]}, with which TRAIN_LAUNCHER begins.")
    words = [sys.executable, "-m", "rewards.trainer.launcher_process"]
    for word in launcher:
        if word == "{command}":
            words += trainer
        else:
            words.append(word.replace("{stage}", verb).replace("{directory}", str(folder)))
    return words


def _wait(run: TrainingRun, process: "subprocess.Popen[bytes]", folder: Path, log: Callable[[], str]) -> None:
    began, before = time.monotonic(), run.worked_seconds
    while True:
        try:
            process.wait(timeout=settings.RUN_HEARTBEAT_SECONDS)
            return
        except subprocess.TimeoutExpired:
            if stopping.is_set():
                raise jobs.Postponed("The worker was stopped. The run waits for the next worker.") from None
            worked = before + time.monotonic() - began
            owned_runs.write(run, heartbeat_at=database_now(), worked_seconds=worked, log=log(), **_progress(folder))
            _refuse_overtime(run)


def _refuse_overtime(run: TrainingRun) -> None:
    # Over all attempts: a run that is killed again and again would else never reach its limit.
    allowed = hours_allowed(run.config)
    if run.worked_seconds < allowed * 3600:
        return
    own = allowed < settings.RUN_HOURS
    limit = "its max_hours" if own else "the longest that a run may work here (the operator's RUN_HOURS)"
    remedy = "Raise max_hours" if own else "Ask the operator for a higher RUN_HOURS"
    raise TookTooLong(
        f"The run was ended after {allowed:g} hours, {limit}. {remedy}, or reduce the work (epochs, max_steps)."
    )


def end_group(process: "subprocess.Popen[bytes]") -> None:
    """Ends the process group with SIGTERM, and with SIGKILL after GRACE_SECONDS, unless it has ended by itself."""
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(timeout=GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _progress(folder: Path) -> dict[str, Any]:
    """Returns the newest event and, if there is one, the curve of losses, from the lines that the trainer appends.

    What follows the training in other folders says how far it is, and has no losses: the row keeps those of before.
    """
    events = events_in(folder)
    if events is None:
        return {}
    losses = [event for event in events if "loss" in event or "validation_loss" in event]
    # The row is written at every heartbeat and read by every page of the run, so it holds a thinned curve.
    stride = max(1, len(losses) // LOSSES_KEPT)
    newest = {"progress": events[-1] if events else {}}
    return {**newest, "losses": losses[::stride]} if losses else newest


def events_in(folder: Path) -> list[dict[str, Any]] | None:
    """Returns what a process of the learning core has told in its folder so far; None where it has not begun."""
    path = folder / "progress.jsonl"
    if not path.exists():
        return None
    events = []
    for line in path.read_text(errors="replace").splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue  # the last line may be half-written while we read
        if event and isinstance(event, dict):
            events.append(event)
    return events


def _tail(log: Path, start: int) -> str:
    size = log.stat().st_size
    with log.open("rb") as file:
        file.seek(max(start, size - LOG_TAIL))
        # PostgreSQL's text columns refuse the character 0.
        return file.read().decode(errors="replace").replace("\x00", "")


def _last_word(code: int, tail: str, folder: Path) -> str:
    # The free space is asked as well: on a full disk the trainer cannot even write why it failed.
    if any(words in tail for words in FULL_SAYS) or shutil.disk_usage(folder).free < FULL_BELOW_BYTES:
        return f"The disk is full. There is no room for the run's files under {settings.ARTIFACTS}."
    if code == -signal.SIGKILL:
        return "The trainer was killed (signal 9), perhaps because memory ran out. Try a smaller batch_tokens."
    if code < 0:
        return f"The trainer was ended by signal {-code} ({signal.Signals(-code).name})."
    if code == TERMINATED:
        return "Something other than its worker told the trainer to end (SIGTERM)."
    words = [line for line in tail.splitlines() if line.strip() and not line.startswith("{")]
    if code == REFUSED and words:
        return f"The trainer refused: {words[-1]}."
    return f"The trainer ended with code {code}: {words[-1] if words else 'it printed nothing'}"


def hours_allowed(config: dict[str, Any]) -> float:
    """Returns how many hours a run with these settings may work."""
    return min(config.get("max_hours") or settings.RUN_HOURS, settings.RUN_HOURS)
