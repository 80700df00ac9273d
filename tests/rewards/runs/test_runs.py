"""The life of a run, without a trainer."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from annotator.celery import app
from annotator.infrastructure.background import heartbeats, redis_client
from annotator.infrastructure.background.heartbeats import QueueHealth
from annotator.models import Label, Project, Task
from rewards import reasons, snapshots, tasks
from rewards.learning.config import TrainConfig, config_hash, parse_config
from rewards.models import RewardModel, RunState, TrainingRun
from rewards.promotion import promotion
from rewards.registry import registry
from rewards.runs import repeated_runs, runs, training
from rewards.runs.run_settings import UnusableConfig, check_config, settled
from rewards.trainer import owned_runs
from tests.annotator.models.test_constraints import make_model
from tests.builders import NOW, imported, label_row, make_project
from tests.conftest import Cast
from tests.refusals import refusal
from tests.rewards.labelled import labelled_project

pytestmark = pytest.mark.usefixtures("workers")

LATER = timedelta(seconds=90)


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would have gone to Redis, where nothing lies that other tests have sent."""
    redis_client.connection().delete("train")
    messages: list[Any] = []
    monkeypatch.setattr(app, "send_task", lambda name, args: messages.append((name, args)))
    return messages


@pytest.fixture
def project(project: Project) -> Project:
    """One with something to learn from."""
    imported(project, label_row("What is it?", "It is this."))
    return project


def working(project: Project, **fields: Any) -> TrainingRun:
    return TrainingRun.objects.create(
        project=project, reason="a test", **{"state": RunState.TRAINING, "attempt": 1, "heartbeat_at": NOW} | fields
    )


def test_without_a_worker_it_says_so_and_leaves_no_run(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "listening", lambda: {queue: QueueHealth(0, None) for queue in heartbeats.QUEUES})
    with refusal("no_worker", match="No worker is running for the queue 'train'"):
        runs.request(project, reason="a test")
    assert not TrainingRun.objects.exists()


def test_a_request_queues_a_run(project: Project, sent: list[Any], django_capture_on_commit_callbacks: Any) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        run = runs.request(project, reason="a test")
    assert (run.state, sent) == (RunState.QUEUED, [("rewards.tasks.train", [run.pk])])


def test_one_run_at_a_time(project: Project) -> None:
    runs.request(project, reason="a test")
    with refusal("already_running"):
        runs.request(project, reason="a test")


def test_settings_that_the_trainer_would_refuse_are_refused_at_once(project: Project) -> None:
    with pytest.raises(UnusableConfig, match="epochs"):
        runs.request(project, reason="a test", config={"epochs": "many"})


def test_a_run_is_claimed_once(project: Project) -> None:
    run = runs.request(project, reason="a test")
    first = runs.claim(run.pk, worker="one", now=NOW)
    assert first is not None
    assert (first.attempt, first.state) == (1, RunState.SNAPSHOTTING)
    assert runs.claim(run.pk, worker="two", now=NOW) is None


def test_a_stale_attempt_writes_nothing(project: Project) -> None:
    stale = working(project)
    TrainingRun.objects.update(attempt=2)
    with pytest.raises(owned_runs.LostRun):
        owned_runs.write(stale, log="late")
    runs.fail(stale, "late", now=NOW)
    stale.refresh_from_db()
    assert (stale.state, stale.log) == (RunState.TRAINING, "")


def test_a_cancelled_run_is_lost_to_its_worker(project: Project) -> None:
    run = working(project)
    runs.cancel(run, now=NOW)
    with pytest.raises(owned_runs.LostRun):
        owned_runs.write(run, log="late")
    with refusal("not_active", match="Cancelled"):
        runs.cancel(run, now=NOW)


def test_a_silent_worker_loses_its_run_to_the_next(project: Project) -> None:
    run = working(project)
    assert runs.recover_lost(now=NOW + timedelta(seconds=30)) == []
    runs.recover_lost(now=NOW + LATER)
    run.refresh_from_db()
    assert run.state == RunState.QUEUED


def test_after_the_last_attempt_a_lost_run_fails(project: Project) -> None:
    run = working(project, attempt=3)
    runs.recover_lost(now=NOW + LATER)
    run.refresh_from_db()
    assert run.state == RunState.FAILED
    assert "disappeared" in run.error


def test_a_forgotten_message_is_sent_again(
    project: Project, django_capture_on_commit_callbacks: Any, sent: list[Any]
) -> None:
    run = working(project, state=RunState.QUEUED, attempt=0, heartbeat_at=None)
    TrainingRun.objects.update(created_at=NOW)
    with django_capture_on_commit_callbacks(execute=True):
        assert runs.recover_lost(now=NOW + LATER) == [run]
        assert runs.recover_lost(now=NOW + LATER) == []
    assert sent == [("rewards.tasks.train", [run.pk])]


def test_enough_new_labels_start_a_run(db: None) -> None:
    labelled_project(retrain_after_labels=80)
    assert [reasons.in_words(run.reason) for run in runs.start_due(now=NOW)] == [
        "80 new labels, and the project retrains after 80"
    ]
    assert runs.start_due(now=NOW) == []


def test_too_few_new_labels_start_none(db: None) -> None:
    labelled_project(retrain_after_labels=81)
    assert runs.start_due(now=NOW) == []


def finished(project: Project, *, ago: timedelta, state: str = RunState.FAILED) -> TrainingRun:
    """A run that began before every label, and ended so long ago."""
    run = working(project, state=state, finished_at=NOW - ago)
    TrainingRun.objects.filter(pk=run.pk).update(created_at=NOW - timedelta(days=1))
    return run


def test_a_failed_run_is_not_started_again_without_new_labels(db: None) -> None:
    project = labelled_project(retrain_after_labels=10)
    working(project, state=RunState.FAILED, finished_at=timezone.now())
    assert runs.due(project, now=timezone.now() + timedelta(days=1)) == ""


def test_hours_start_a_run_only_with_new_labels(db: None) -> None:
    project = labelled_project(retrain_after_hours=1)
    run = working(project, state=RunState.PROMOTED)
    TrainingRun.objects.update(created_at=NOW - timedelta(hours=2))
    assert "hours old" in reasons.in_words(runs.due(project, now=NOW))
    TrainingRun.objects.filter(pk=run.pk).update(created_at=NOW + timedelta(seconds=1))
    assert runs.due(project, now=NOW + timedelta(hours=3)) == ""


def test_the_loop_rests_after_a_run(db: None) -> None:
    project = labelled_project(retrain_after_labels=10, retrain_cooldown_minutes=30)
    finished(project, ago=timedelta(minutes=29))
    assert runs.due(project, now=NOW) == ""
    assert "80 new labels" in reasons.in_words(runs.due(project, now=NOW + timedelta(minutes=1)))


def test_nobody_who_asks_has_to_wait_for_the_rest_to_end(db: None) -> None:
    project = labelled_project(retrain_cooldown_minutes=30)
    finished(project, ago=timedelta(minutes=1))
    assert runs.request(project, reason="a test").state == RunState.QUEUED


def learnt(project: Project, *, champion: bool = True, **fields: Any) -> RewardModel:
    """A model that today's code has trained on today's labels with the project's settings."""
    model = make_model(project, 3, is_champion=champion)
    config = check_config(settled(project, {}))
    origin = {"config_hash": config_hash(config), "seed": config.seed, "code_version": repeated_runs.code_version()}
    TrainingRun.objects.update(snapshot=snapshots.take(project, now=NOW), **origin | fields)
    model.directory().mkdir(parents=True, exist_ok=True)
    (model.directory() / registry.MANIFEST).touch()
    return model


def claimed(project: Project, **config: Any) -> TrainingRun:
    """A run as the train worker takes it up."""
    run = runs.claim(runs.request(project, reason="a test", config=config).pk, worker="one", now=NOW)
    assert run is not None
    return run


@pytest.mark.parametrize("champion", [True, False])
def test_what_a_model_has_learnt_is_not_trained_again(db: None, champion: bool) -> None:
    project = labelled_project(retrain_after_labels=10)
    learnt(project, champion=champion, created_at=NOW - timedelta(days=1))
    with pytest.raises(repeated_runs.NothingNew, match=r"Nothing has changed since version 3, .* label more"):
        training.carry_out(claimed(project))


def test_a_run_that_would_repeat_another_ends_with_the_reason(db: None) -> None:
    """Neither as a failure that somebody has to look at, nor to be started again by the policy."""
    project = labelled_project(retrain_after_labels=10)
    learnt(project, created_at=NOW - timedelta(days=1))
    (run,) = runs.start_due(now=NOW)
    tasks.train(run.pk)
    run.refresh_from_db()
    assert (run.state, run.attempt, run.error[:33]) == (RunState.CANCELLED, 1, "Nothing has changed since version")
    assert run.finished_at is not None
    assert runs.start_due(now=timezone.now() + timedelta(days=1)) == []


def test_other_settings_make_it_new(db: None) -> None:
    project = labelled_project()
    learnt(project)
    repeated_runs.refuse_repetition(claimed(project, seed=11), snapshots.take(project, now=NOW))


def test_a_changed_label_makes_it_new(db: None) -> None:
    project = labelled_project()
    learnt(project)
    label = Label.objects.in_force().for_project(project.pk)[0]
    Label.objects.filter(pk=label.pk).update(means=dict.fromkeys(label.means, 0.5))
    repeated_runs.refuse_repetition(claimed(project), snapshots.take(project, now=NOW))


def test_without_labels_no_run_starts(db: None) -> None:
    with refusal("not_enough_labels", match="There are no labels and no preferences"):
        runs.request(make_project("empty"), reason="a test")
    assert not TrainingRun.objects.exists()


# A person steps in -----------------------------------------------------------------------------------------


def test_the_row_names_what_shapes_the_result(project: Project) -> None:
    run = runs.request(project, reason="a test", config={"seed": 7, "threads": 1})
    assert run.seed == 7
    assert run.config_hash == config_hash(parse_config(TrainConfig, {"snapshot": "elsewhere", **run.config}))


def test_a_retry_repeats_settings_and_snapshot(db: None, cast: Cast) -> None:
    project = labelled_project()
    taken = snapshots.take(project, now=NOW)
    failed = working(project, state=RunState.FAILED, config={"seed": 3}, snapshot=taken)
    again = runs.retry(failed, by=cast.carol)
    assert (again.config, again.seed, again.snapshot, again.requested_by) == ({"seed": 3}, 3, taken, cast.carol)
    assert reasons.in_words(again.reason) == f"run {failed.pk} again, which failed"


def test_a_retry_leaves_a_snapshot_alone_that_holds_redacted_text(db: None, cast: Cast) -> None:
    project = labelled_project()
    cancelled = working(project, state=RunState.CANCELLED, snapshot=snapshots.take(project, now=NOW))
    Task.objects.filter(pk=project.tasks.all()[0].pk).update(redacted_at=NOW)
    again = runs.retry(TrainingRun.objects.get(pk=cancelled.pk), by=cast.carol)
    assert again.snapshot is None
    assert "on a new snapshot" in reasons.in_words(again.reason)


def test_what_has_not_failed_is_not_retried(project: Project, cast: Cast) -> None:
    with refusal("not_ended", match="Promoted"):
        runs.retry(working(project, state=RunState.PROMOTED), by=cast.carol)


@pytest.fixture
def waiting(project: Project) -> RewardModel:
    """A model whose run waits for a manager's decision."""
    model = make_model(project, 1)
    TrainingRun.objects.filter(pk=model.run_id).update(state=RunState.AWAITING_PROMOTION, heartbeat_at=NOW)
    return model


def test_a_run_that_waits_for_a_decision_is_not_lost(waiting: RewardModel) -> None:
    runs.recover_lost(now=NOW + timedelta(days=1))
    assert TrainingRun.objects.get().state == RunState.AWAITING_PROMOTION


def test_a_model_that_waits_can_be_promoted(waiting: RewardModel) -> None:
    promotion.promote(waiting, now=NOW)
    assert TrainingRun.objects.get().state == RunState.PROMOTED
    with refusal("nothing_to_decide"):
        runs.reject(waiting.run, now=NOW)


def test_a_model_that_waits_can_be_rejected(waiting: RewardModel) -> None:
    with refusal("already_running", match="is waiting for a decision"):
        runs.request(waiting.project, reason="a test")
    runs.reject(waiting.run, now=NOW)
    assert TrainingRun.objects.get().state == RunState.REJECTED
    assert not RewardModel.objects.get().is_champion
