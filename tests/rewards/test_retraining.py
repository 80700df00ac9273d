"""The life of a run, without a trainer."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from annotator import workers
from annotator.celery import app
from annotator.models import Project
from annotator.workers import NoWorker, QueueHealth
from rewards import retraining
from rewards.models import RunState, TrainingRun
from tests.builders import NOW
from tests.rewards.labelled import labelled_project

LATER = timedelta(seconds=90)


@pytest.fixture(autouse=True)
def _workers_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "listening", lambda: {queue: QueueHealth(1, 0.0) for queue in workers.QUEUES})


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would have gone to Redis."""
    messages: list[Any] = []
    monkeypatch.setattr(app, "send_task", lambda name, args: messages.append((name, args)))
    return messages


def working(project: Project, **fields: Any) -> TrainingRun:
    return TrainingRun.objects.create(
        project=project, reason="a test", **{"state": RunState.TRAINING, "attempt": 1, "heartbeat_at": NOW} | fields
    )


def test_without_a_worker_it_says_so_and_leaves_no_run(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "listening", lambda: {queue: QueueHealth(0, None) for queue in workers.QUEUES})
    with pytest.raises(NoWorker, match="No worker listens to the queue 'train'"):
        retraining.request(project, reason="a test")
    assert not TrainingRun.objects.exists()


def test_a_request_queues_a_run(project: Project, sent: list[Any], django_capture_on_commit_callbacks: Any) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        run = retraining.request(project, reason="a test")
    assert (run.state, sent) == (RunState.QUEUED, [("rewards.tasks.train", [run.pk])])


def test_one_run_at_a_time(project: Project) -> None:
    retraining.request(project, reason="a test")
    with pytest.raises(retraining.AlreadyRunning):
        retraining.request(project, reason="a test")


def test_settings_that_the_trainer_would_refuse_are_refused_at_once(project: Project) -> None:
    with pytest.raises(retraining.UnusableConfig, match="epochs"):
        retraining.request(project, reason="a test", config={"epochs": "many"})


def test_a_run_is_claimed_once(project: Project) -> None:
    run = retraining.request(project, reason="a test")
    first = retraining.claim(run.pk, worker="one", now=NOW)
    assert first is not None
    assert (first.attempt, first.state) == (1, RunState.SNAPSHOTTING)
    assert retraining.claim(run.pk, worker="two", now=NOW) is None


def test_a_stale_attempt_writes_nothing(project: Project) -> None:
    stale = working(project)
    TrainingRun.objects.update(attempt=2)
    with pytest.raises(retraining.LostRun):
        retraining.write(stale, log="late")
    retraining.fail(stale, "late", now=NOW)
    stale.refresh_from_db()
    assert (stale.state, stale.log) == (RunState.TRAINING, "")


def test_a_cancelled_run_is_lost_to_its_worker(project: Project) -> None:
    run = working(project)
    retraining.cancel(run, now=NOW)
    with pytest.raises(retraining.LostRun):
        retraining.write(run, log="late")
    with pytest.raises(retraining.NotActive, match="Cancelled"):
        retraining.cancel(run, now=NOW)


def test_a_silent_worker_loses_its_run_to_the_next(project: Project) -> None:
    run = working(project)
    assert retraining.recover_lost(now=NOW + timedelta(seconds=30)) == []
    retraining.recover_lost(now=NOW + LATER)
    run.refresh_from_db()
    assert run.state == RunState.QUEUED


def test_after_the_last_attempt_a_lost_run_fails(project: Project) -> None:
    run = working(project, attempt=3)
    retraining.recover_lost(now=NOW + LATER)
    run.refresh_from_db()
    assert run.state == RunState.FAILED
    assert "disappeared" in run.error


def test_a_forgotten_message_is_sent_again(
    project: Project, django_capture_on_commit_callbacks: Any, sent: list[Any]
) -> None:
    run = working(project, state=RunState.QUEUED, attempt=0, heartbeat_at=None)
    TrainingRun.objects.update(created_at=NOW)
    with django_capture_on_commit_callbacks(execute=True):
        assert retraining.recover_lost(now=NOW + LATER) == [run]
        assert retraining.recover_lost(now=NOW + LATER) == []
    assert sent == [("rewards.tasks.train", [run.pk])]


def test_enough_new_labels_start_a_run(db: None) -> None:
    labelled_project(retrain_after_labels=80)
    assert [run.reason for run in retraining.start_due(now=NOW)] == ["80 new labels, and the project retrains after 80"]
    assert retraining.start_due(now=NOW) == []


def test_too_few_new_labels_start_none(db: None) -> None:
    labelled_project(retrain_after_labels=81)
    assert retraining.start_due(now=NOW) == []


def test_a_failed_run_is_not_started_again_without_new_labels(db: None) -> None:
    project = labelled_project(retrain_after_labels=10)
    working(project, state=RunState.FAILED)
    assert retraining.due(project, now=timezone.now()) == ""


def test_hours_start_a_run_only_with_new_labels(db: None) -> None:
    project = labelled_project(retrain_after_hours=1)
    run = working(project, state=RunState.PROMOTED)
    TrainingRun.objects.update(created_at=NOW - timedelta(hours=2))
    assert "hours old" in retraining.due(project, now=NOW)
    TrainingRun.objects.filter(pk=run.pk).update(created_at=NOW + timedelta(seconds=1))
    assert retraining.due(project, now=NOW + timedelta(hours=3)) == ""
