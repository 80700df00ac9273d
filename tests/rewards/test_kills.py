"""Whatever is killed, a run ends: as failed, or by another worker going on."""

import os
import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.utils import timezone

from annotator import workers
from rewards import retraining
from rewards.models import RewardModel, RunState, TrainingRun
from tests.celery_workers import wait_for, worker
from tests.rewards.labelled import labelled_project

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("training")]
CONFIG = {"epochs": 3, "max_steps": 12, "batch_tokens": 512, "checkpoint_steps": 2, "threads": 1}


@pytest.fixture(autouse=True)
def _same_artifacts(settings: LazySettings, tmp_path: Path) -> Iterator[None]:
    yield
    workers.connection().delete(workers.KEY)


def trainer_of(run: TrainingRun) -> int | None:
    """The process that trains the run, by its command line."""
    started = f"rewards.learning train {run.directory()}"
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


def test_a_killed_trainer_fails_the_run(tmp_path: Path) -> None:
    project = labelled_project(training_config=CONFIG)
    with worker("train", tmp_path):
        run = retraining.request(project, reason="a test")
        wait_for(lambda: trainer_of(run), what="the trainer")
        os.kill(trainer_of(run) or 0, signal.SIGKILL)
        wait_for(lambda: TrainingRun.objects.get(pk=run.pk).state == RunState.FAILED, what="the failure")
    run.refresh_from_db()
    assert "killed (signal 9)" in run.error
    assert run.finished_at is not None


def test_a_cancelled_run_stops_its_trainer(tmp_path: Path) -> None:
    project = labelled_project(training_config=CONFIG)
    with worker("train", tmp_path):
        run = retraining.request(project, reason="a test")
        wait_for(lambda: trainer_of(run), what="the trainer")
        retraining.cancel(run, now=timezone.now())
        wait_for(lambda: trainer_of(run) is None, what="the trainer's end")
    assert TrainingRun.objects.get(pk=run.pk).state == RunState.CANCELLED


def test_a_killed_worker_leaves_no_trainer_and_the_next_worker_goes_on(tmp_path: Path) -> None:
    project = labelled_project(tasks=16, training_config=CONFIG)
    with worker("train", tmp_path) as first:
        run = retraining.request(project, reason="a test")
        wait_for(lambda: steps_in(run) >= 3, seconds=120, what="the first steps")
        os.kill(first.pid, signal.SIGKILL)
        wait_for(lambda: trainer_of(run) is None, what="the orphan's end")
    run.refresh_from_db()
    assert run.state == RunState.TRAINING
    with worker("train", tmp_path):
        assert retraining.recover_lost(now=timezone.now() + timedelta(minutes=5))
        wait_for(lambda: TrainingRun.objects.get(pk=run.pk).finished_at, seconds=200, what="the run's end")
    run.refresh_from_db()
    assert (run.state, run.attempt) in [(RunState.PROMOTED, 2), (RunState.REJECTED, 2)], run.error
    assert RewardModel.objects.count() == 1


def test_a_stopped_worker_puts_its_run_down(tmp_path: Path) -> None:
    project = labelled_project(training_config=CONFIG)
    with worker("train", tmp_path) as first:
        run = retraining.request(project, reason="a test")
        wait_for(lambda: trainer_of(run), what="the trainer")
        first.terminate()
        first.wait(timeout=20)
    assert trainer_of(run) is None
    assert TrainingRun.objects.get(pk=run.pk).state == RunState.QUEUED


def test_a_flushed_redis_loses_no_run(tmp_path: Path) -> None:
    project = labelled_project(training_config={**CONFIG, "epochs": 0})
    with worker("train", tmp_path) as first:
        os.kill(first.pid, signal.SIGSTOP)
        run = retraining.request(project, reason="a test")
        workers.connection().flushdb()
        os.kill(first.pid, signal.SIGCONT)
        assert retraining.recover_lost(now=timezone.now() + timedelta(minutes=5)) == [run]
        wait_for(lambda: TrainingRun.objects.get(pk=run.pk).finished_at, seconds=200, what="the run's end")
    assert RewardModel.objects.count() == 1
