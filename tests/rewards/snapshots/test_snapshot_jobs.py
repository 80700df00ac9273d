"""The light worker builds what was asked for, whoever is killed or stopped meanwhile."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings, settings
from django.db import IntegrityError, connection

from annotator.infrastructure.db import locks
from annotator.infrastructure.jobs import ATTEMPTS, Postponed, run_waiting
from annotator.infrastructure.stopping import stopping
from annotator.infrastructure.storage import disk_space
from annotator.models import Project, Role
from rewards import snapshots, tasks
from rewards.models import Snapshot, SnapshotJob, TrainingRun
from rewards.runs import repeated_runs, runs
from rewards.snapshots import building, lines, snapshot_jobs
from rewards.trainer import owned_runs, run_steps
from tests.builders import NOW, make_member, make_user
from tests.celery_workers import environment, wait_for, worker
from tests.conftest import As
from tests.rewards.labelled import labelled_project

Usage = namedtuple("Usage", ["total", "used", "free"])


def unfinished() -> list[Path]:
    return list((settings.ARTIFACTS / "snapshots").glob(".building-*"))


def ended(job: SnapshotJob) -> tuple[str, str]:
    job.refresh_from_db()
    return job.state, job.code


@pytest.fixture
def project(db: None) -> Project:
    return labelled_project(tasks=12)


@pytest.fixture
def job(project: Project) -> SnapshotJob:
    return SnapshotJob.objects.create(project=project)


def test_beat_finds_a_job_whose_message_was_lost(job: SnapshotJob) -> None:
    assert tasks.build_snapshots() == 1
    assert ended(job) == ("done", "")
    assert job.snapshot == Snapshot.objects.get()
    assert tasks.build_snapshots() == 0


def test_a_job_whose_worker_was_lost_is_taken_up_again(job: SnapshotJob) -> None:
    SnapshotJob.objects.update(state=SnapshotJob.State.BUILDING, attempt=2, tries=2, tasks=7)
    assert snapshot_jobs.build_waiting() == 1
    assert (ended(job), job.attempt, job.tasks) == (("done", ""), 3, 12)


def test_a_job_that_loses_every_worker_ends(job: SnapshotJob) -> None:
    SnapshotJob.objects.update(state=SnapshotJob.State.BUILDING, tries=ATTEMPTS)
    assert snapshot_jobs.build_waiting() == 0
    assert ended(job) == ("failed", "worker_lost")
    assert "in each of 3 attempts" in job.error


def test_one_request_of_a_project_waits_at_a_time(job: SnapshotJob) -> None:
    with pytest.raises(IntegrityError, match="one_queued_snapshot_job_per_project"):
        SnapshotJob.objects.create(project=job.project)


def test_a_worker_that_is_stopped_leaves_the_job_to_the_next(job: SnapshotJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "TASKS_AT_ONCE", 5)
    with monkeypatch.context() as patched:
        patched.setattr(building.Files, "add", lambda *_: stopping.set())
        try:
            snapshot_jobs.build_waiting()
        finally:
            stopping.clear()
    assert (ended(job), job.tries, unfinished()) == (("building", ""), 0, [])
    assert job.attempt == 1, "what an earlier worker knows is never valid again"
    snapshot_jobs.build_waiting()
    assert ended(job) == ("done", "")


def test_a_worker_that_lost_the_job_writes_nothing_to_it(job: SnapshotJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "TASKS_AT_ONCE", 5)
    taken = SnapshotJob.objects.filter(pk=job.pk, attempt=1)

    def lose(*_: Any) -> None:
        taken.update(attempt=2, tries=2, tasks=3)

    monkeypatch.setattr(disk_space, "require_room", lose)
    run_waiting(snapshot_jobs._SNAPSHOTS, most=1)
    assert (ended(job), job.attempt, job.tries, job.tasks, job.snapshot) == (("building", ""), 2, 2, 3, None)


# A full disk -----------------------------------------------------------------------------------------------


# Without a transaction around, as in the worker: reading that is cut short may cancel its statement.
@pytest.mark.django_db(transaction=True)
def test_a_disk_that_fills_up_meanwhile_is_named_and_keeps_no_litter(
    job: SnapshotJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as filled:
        filled.setattr(building.Side, "add", full)
        snapshot_jobs.build_waiting()
    assert (ended(job), unfinished()) == (("failed", "disk_full"), [])
    assert job.error == "The disk is full. Try again when there is room."
    again = SnapshotJob.objects.create(project=job.project)
    snapshot_jobs.build_waiting()
    assert ended(again) == ("done", "")


def test_a_snapshot_stops_before_the_database_has_no_room(
    job: SnapshotJob, monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    free = iter([10**9, 10**9, 42 * 10**6])
    settings.DISK_RESERVE_MB, settings.DATABASE_DIR = 100, ""
    monkeypatch.setattr(lines, "TASKS_AT_ONCE", 5)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**9, 0, next(free)))
    snapshot_jobs.build_waiting()
    assert (ended(job), unfinished()) == (("failed", "disk_full"), [])
    assert "42 MB free, and 100 MB are needed" in job.error


# Killed ----------------------------------------------------------------------------------------------------

HANGS = """
import time, django
django.setup()
from rewards.snapshots import building, snapshot_jobs
building.Files.finish = lambda written: time.sleep(600)
snapshot_jobs.build_waiting()
"""


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_after_a_kill_the_next_attempt_finishes_and_nothing_is_left(tmp_path: Path) -> None:
    job = SnapshotJob.objects.create(project=labelled_project(tasks=12))
    alive = environment(tmp_path, DJANGO_SETTINGS_MODULE="annotator.settings")
    process = subprocess.Popen([sys.executable, "-c", HANGS], env=alive, cwd=settings.BASE_DIR)
    try:
        wait_for(lambda: SnapshotJob.objects.get().tasks == 12, what="the written tasks")
        assert len(unfinished()) == 1
        # Nobody builds beside it, and nobody takes its folder.
        assert (snapshot_jobs.build_waiting(), snapshots.remove_unfinished(), ended(job)) == (0, [], ("building", ""))
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    wait_for(lambda: is_free(job.project), what="the release of the lock")
    assert len(unfinished()) == 1
    assert snapshot_jobs.build_waiting() == 1
    assert (ended(job), job.attempt, unfinished()) == (("done", ""), 2, [])
    assert job.snapshot == snapshots.take(job.project, now=NOW)


def is_free(project: Project) -> bool:
    """Whether PostgreSQL has noticed that the process is dead."""
    with (
        locks.session_lock("snapshot jobs", project.pk) as first,
        locks.session_lock(building.BUILDING, project.pk) as second,
    ):
        return first and second


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_light_worker_answers_a_request_over_rest(tmp_path: Path, as_user: As) -> None:
    project, boss = labelled_project(tasks=12), make_user("boss")
    make_member(project, boss, role=Role.MANAGER)
    client = as_user(boss)
    with worker("light", tmp_path):
        answer = client.post(f"/api/v1/projects/{project.slug}/snapshots/")
        assert answer.status_code == 202, answer.json()
        place = answer.headers["Location"]
        wait_for(lambda: client.get(place).json()["finished_at"], what="the snapshot")
    job = client.get(place).json()
    assert (job["state"], job["error"], job["tasks"], job["snapshot"]["labels"]) == ("done", "", 12, 24)
    assert not unfinished()


def test_the_sweep_removes_what_a_killed_worker_left(project: Project) -> None:
    folder = settings.ARTIFACTS / "snapshots" / f".building-{project.pk}-abc"
    folder.mkdir(parents=True)
    (folder / "train.jsonl").write_text("{}\n")
    assert snapshots.remove_unfinished() == [folder]
    assert unfinished() == []


# Runs ------------------------------------------------------------------------------------------------------


def claimed(project: Project) -> TrainingRun:
    run = runs.claim(TrainingRun.objects.create(project=project, reason="a test").pk, worker="here", now=NOW)
    assert run is not None
    return run


def test_a_run_shows_that_it_is_alive_while_its_snapshot_is_built(project: Project) -> None:
    run = claimed(project)
    run_steps.new_snapshot(run, refuse_repetition=repeated_runs.refuse_repetition)
    run.refresh_from_db()
    assert run.progress == {"event": "snapshot", "tasks": 12}
    assert run.heartbeat_at is not None
    assert run.heartbeat_at > NOW


def test_a_run_whose_worker_is_stopped_while_its_snapshot_is_built_waits_for_the_next(project: Project) -> None:
    stopping.set()
    try:
        with pytest.raises(Postponed):
            run_steps.new_snapshot(claimed(project), refuse_repetition=repeated_runs.refuse_repetition)
    finally:
        stopping.clear()
    assert unfinished() == []


def test_a_cancelled_run_stops_building_at_once(project: Project) -> None:
    run = claimed(project)
    runs.cancel(run, now=NOW)
    with pytest.raises(owned_runs.LostRun):
        run_steps.new_snapshot(run, refuse_repetition=repeated_runs.refuse_repetition)
    assert (unfinished(), Snapshot.objects.count()) == ([], 0)


@pytest.mark.django_db(transaction=True)
def test_the_lock_is_free_after_a_disk_was_full(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading was cut short in the middle of a statement, whose connection holds the lock."""

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(building.Side, "add", full)
    with pytest.raises(disk_space.DiskNearlyFull):
        snapshots.take(project, now=NOW)
    with connection.cursor() as cursor:
        held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = hashtext(%s)::oid"
        cursor.execute(held, [building.BUILDING])
        assert cursor.fetchone() == (0,)
