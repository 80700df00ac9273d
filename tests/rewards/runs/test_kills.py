"""Whatever is killed, a run ends: as failed, or by another worker going on."""

import json
import os
import signal
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.db import connection
from django.utils import timezone

from annotator.infrastructure.background import heartbeats, redis_client
from annotator.launch.embedded import Postgres
from rewards.models import RewardModel, RunState, TrainingRun
from rewards.runs import runs
from tests import servers
from tests.celery_workers import wait_for, worker
from tests.rewards.labelled import labelled_project

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("training")]
CONFIG = {
    "epochs": 3,
    "max_steps": 12,
    "batch_tokens": 512,
    "checkpoint_steps": 2,
    "threads": 1,
    "cross_fit_minutes": 0,
}


@pytest.fixture(autouse=True)
def _same_artifacts(settings: LazySettings, tmp_path: Path) -> Iterator[None]:
    yield
    redis_client.connection().delete(heartbeats.KEY)


def trainer_of(run: TrainingRun, *, stage: str = "train") -> int | None:
    """The process that trains the run, by its command line."""
    started = f"rewards.learning {stage} {run.directory()}"
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and started in _command(folder):
            return int(folder.name)
    return None


def _command(folder: Path) -> str:
    try:
        return (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def steps_in(run: TrainingRun) -> int:
    run.refresh_from_db()
    assert run.state not in (RunState.FAILED, RunState.REJECTED), run.error
    return int(run.progress.get("step", 0))


def kill_trainer(run: TrainingRun) -> None:
    """The one that is there now, or the next to come."""
    wait_for(lambda: trainer_of(run), what="the trainer")
    trainer = trainer_of(run)
    assert trainer
    os.kill(trainer, signal.SIGKILL)
    wait_for(lambda: trainer_of(run) != trainer, what="its end")


def ended(run: TrainingRun) -> TrainingRun:
    """Once it has come to its verdict."""
    wait_for(lambda: TrainingRun.objects.get(pk=run.pk).finished_at, seconds=200, what="the run's end")
    run.refresh_from_db()
    assert run.state in (RunState.PROMOTED, RunState.REJECTED), run.error
    return run


def resumed(run: TrainingRun) -> list[int]:
    """The steps from which the trainer went on."""
    events = map(json.loads, (run.directory() / "progress.jsonl").read_text().splitlines())
    return [event["step"] for event in events if event["event"] == "resumed"]


def test_a_trainer_killed_in_the_middle_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    project = labelled_project(tasks=16, training_config=CONFIG)
    with worker("train", tmp_path):
        run = runs.request(project, reason="a test")
        wait_for(lambda: steps_in(run) >= 3, seconds=120, what="the first steps")
        kill_trainer(run)
        assert ended(run).attempt == 2
    assert resumed(run)[0] >= 2
    assert RewardModel.objects.count() == 1


def test_a_trainer_killed_again_and_again_fails_the_run(tmp_path: Path) -> None:
    project = labelled_project(training_config=CONFIG)
    with worker("train", tmp_path):
        run = runs.request(project, reason="a test")
        for attempt in (1, 2, 3):
            claimed = TrainingRun.objects.filter(pk=run.pk, attempt=attempt)
            wait_for(claimed.exists, what=f"attempt {attempt}")
            kill_trainer(run)
        wait_for(lambda: TrainingRun.objects.get(pk=run.pk).state == RunState.FAILED, what="the failure")
    run.refresh_from_db()
    assert "killed (signal 9)" in run.error
    assert run.finished_at is not None


def test_a_restart_of_postgresql_costs_no_step(tmp_path: Path) -> None:
    project = labelled_project(tasks=16, training_config=CONFIG)
    with worker("train", tmp_path):
        run = runs.request(project, reason="a test")
        wait_for(lambda: steps_in(run) >= 2, seconds=120, what="the first steps")
        trainer = trainer_of(run)
        restart_postgres(away_seconds=5)
        assert trainer_of(run) == trainer
        assert ended(run).attempt == 1
    assert RewardModel.objects.count() == 1


def restart_postgres(*, away_seconds: float) -> None:
    databases = [server for server in servers.running if isinstance(server, Postgres)]
    if not databases:
        pytest.skip("DATABASE_URL names a server that is not ours to restart")
    connection.close()
    databases[0].stop()
    time.sleep(away_seconds)
    databases[0].start()


def test_a_cancelled_run_stops_its_trainer(tmp_path: Path) -> None:
    project = labelled_project(training_config=CONFIG)
    with worker("train", tmp_path):
        run = runs.request(project, reason="a test")
        wait_for(lambda: trainer_of(run), what="the trainer")
        runs.cancel(run, now=timezone.now())
        wait_for(lambda: trainer_of(run) is None, what="the trainer's end")
    assert TrainingRun.objects.get(pk=run.pk).state == RunState.CANCELLED


def test_a_killed_worker_leaves_no_trainer_and_the_next_worker_goes_on(tmp_path: Path) -> None:
    project = labelled_project(tasks=16, training_config=CONFIG)
    with worker("train", tmp_path) as first:
        run = runs.request(project, reason="a test")
        wait_for(lambda: steps_in(run) >= 3, seconds=120, what="the first steps")
        os.kill(first.pid, signal.SIGKILL)
        wait_for(lambda: trainer_of(run) is None, what="the orphan's end")
    run.refresh_from_db()
    assert run.state == RunState.TRAINING
    with worker("train", tmp_path):
        assert runs.recover_lost(now=timezone.now() + timedelta(minutes=5))
        assert ended(run).attempt == 2
    assert RewardModel.objects.count() == 1


def test_a_stopped_worker_puts_its_run_down(tmp_path: Path) -> None:
    project = labelled_project(training_config=CONFIG)
    with worker("train", tmp_path) as first:
        run = runs.request(project, reason="a test")
        wait_for(lambda: trainer_of(run), what="the trainer")
        first.terminate()
        first.wait(timeout=20)
    assert trainer_of(run) is None
    assert TrainingRun.objects.get(pk=run.pk).state == RunState.QUEUED


def test_a_flushed_redis_loses_no_run(tmp_path: Path) -> None:
    project = labelled_project(training_config={**CONFIG, "epochs": 0})
    heartbeats.beat("train@nowhere", ["train"])
    run = runs.request(project, reason="a test")
    redis_client.connection().flushdb()
    assert runs.recover_lost(now=timezone.now() + timedelta(minutes=5)) == [run]
    with worker("train", tmp_path):
        ended(run)
    assert RewardModel.objects.count() == 1
