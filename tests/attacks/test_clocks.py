"""Hosts whose clocks are a minute apart: what they compare with each other is the database's time, and Redis's."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone
from rest_framework.test import APIClient

from annotator import tasks
from annotator.infrastructure.background import heartbeats, redis_client
from annotator.infrastructure.db.clock import database_now
from annotator.models import Assignment, LoginFailures, Project
from rewards import tasks as machine_tasks
from rewards.models import RunState, TrainingRun
from rewards.runs import runs, training
from tests.builders import make_task
from tests.conftest import As, Cast

OFF = 64.0


@pytest.fixture
def behind(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], Any]:
    """Puts this host's clock so many seconds off while the block runs."""
    seconds, now = time.time, timezone.now

    @contextmanager
    def off(by: float) -> Iterator[None]:
        with monkeypatch.context() as host:
            host.setattr(time, "time", lambda: seconds() + by)
            host.setattr(timezone, "now", lambda: now() + timedelta(seconds=by))
            yield

    return off


@pytest.mark.parametrize("by", [-OFF, OFF])
def test_a_run_of_a_worker_whose_clock_is_off_is_not_lost(
    project: Project, behind: Callable[[float], Any], monkeypatch: pytest.MonkeyPatch, by: float
) -> None:
    monkeypatch.setattr(training, "carry_out", lambda run: None)
    run = TrainingRun.objects.create(project=project, reason="a test")
    with behind(by):
        machine_tasks.train(run.pk)
    machine_tasks.recover_lost_runs()
    run.refresh_from_db()
    assert run.state == RunState.SNAPSHOTTING
    assert run.heartbeat_at is not None
    assert abs(timezone.now() - run.heartbeat_at) < timedelta(seconds=5)


@pytest.mark.parametrize("by", [-OFF, OFF])
def test_a_worker_whose_clock_is_off_is_listening(behind: Callable[[float], Any], by: float) -> None:
    with behind(by):
        heartbeats.beat("train@elsewhere", ["train"])
    try:
        queue_health = heartbeats.listening()["train"]
    finally:
        heartbeats.forget("train@elsewhere")
    assert queue_health.alive
    assert queue_health.heartbeat_age is not None
    assert queue_health.heartbeat_age < 5


def test_a_lease_lasts_as_long_whichever_host_gave_it(
    project: Project, cast: Cast, as_user: As, behind: Callable[[float], Any]
) -> None:
    Project.objects.update(lease_minutes=1)
    make_task(project)
    with behind(-OFF):
        as_user(cast.alice).post("/api/v1/projects/talk/next/")
    assert tasks.expire_leases() == 0
    assert Assignment.objects.get().state == "leased"


def test_the_time_of_the_database_costs_a_question_a_minute(db: None, django_assert_num_queries: Any) -> None:
    database_now()
    with django_assert_num_queries(0):
        times = [database_now() for _ in range(100)]
    assert times == sorted(times)
    assert abs(times[0] - datetime.now(times[0].tzinfo)) < timedelta(seconds=2)


def test_a_silent_run_is_still_lost(project: Project) -> None:
    redis_client.connection().delete("train")  # what other tests have sent would count as waiting
    long_ago = timezone.now() - timedelta(seconds=90)
    silent = {"state": RunState.TRAINING, "attempt": 1, "heartbeat_at": long_ago}
    run = TrainingRun.objects.create(project=project, reason="a test", **silent)
    assert machine_tasks.recover_lost_runs() == 1
    run.refresh_from_db()
    assert run.state == RunState.QUEUED
    assert runs.claim(run.pk, worker="w", now=timezone.now()) is not None


@pytest.mark.parametrize("by", [-OFF, OFF])
def test_wrong_passwords_are_waited_for_as_long_whichever_host_counts(
    cast: Cast, behind: Callable[[float], Any], by: float
) -> None:
    """A wait of a minute by the database's clock, on a host that takes it for over, or for twice as long."""
    guess = {"username": "alice", "password": "a guess"}
    for _ in range(5):
        APIClient().post("/api/v1/token/", guess)
    LoginFailures.objects.update(ends_at=database_now() + timedelta(seconds=60))
    with behind(by):
        answer = APIClient().post("/api/v1/token/", guess)
    assert answer.status_code == 429
    assert 50 < int(answer.headers["Retry-After"]) <= 60


OWN_CLOCK = {"annotator/accounts/tokens.py", "annotator/api/authentication.py"}
"""Knox writes when a token ends by the host's clock, days ahead; and so it is read."""


def test_no_stage_and_no_door_asks_the_host_for_the_time() -> None:
    sources = [path for folder in ("annotator", "rewards") for path in (settings.BASE_DIR / folder).rglob("*.py")]
    asks = {str(path.relative_to(settings.BASE_DIR)) for path in sources if "timezone.now" in path.read_text()}
    assert {ask for ask in asks if "/migrations/" not in ask} == OWN_CLOCK
