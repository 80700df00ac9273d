"""A worker that cannot do the work does not take it, says why, and takes work again when it can."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.conf import LazySettings
from django.test import Client

from annotator.infrastructure.background import fitness, heartbeats, redis_client
from annotator.infrastructure.background.fitness import UnfitReason
from annotator.infrastructure.storage import artifacts
from annotator.managing.issues import Issue, Problem, facts, issues
from annotator.models import Installation, User
from tests.builders import make_project
from tests.refusals import refusal


class Queue:
    def __init__(self, name: str) -> None:
        self.name = name


class Consumer:
    """Celery's consumer as far as a heartbeat sees it: it notes what it consumes."""

    def __init__(self, *queues: str) -> None:
        self.hostname = "train@elsewhere"
        self.task_consumer = self
        self.queues = [Queue(name) for name in queues]
        self.consumed = set(queues)

    def call_soon(self, change: Callable[[str], None], queue: str) -> None:
        change(queue)

    def cancel_task_queue(self, queue: str) -> None:
        self.consumed.remove(queue)

    def add_task_queue(self, queue: str) -> None:
        self.consumed.add(queue)


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    redis_client.connection().delete(heartbeats.KEY)
    yield
    redis_client.connection().delete(heartbeats.KEY)


@pytest.fixture
def marked(transactional_db: None) -> None:
    artifacts.mark_new()


def adopt_elsewhere() -> None:
    Installation.objects.update(artifacts_id=uuid4())


def refuse(*_: Any, **__: Any) -> None:
    raise psycopg.OperationalError("connection refused")


def break_database(monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> None:
    monkeypatch.setattr(psycopg, "connect", refuse)


def break_artifacts(monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> None:
    monkeypatch.setattr(settings, "ARTIFACTS", Path("/nowhere/artifacts"))


def break_migrations(monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> None:
    monkeypatch.setattr(fitness, "_newest_migrations", lambda: frozenset({("annotator", "9999_tomorrow")}))


def break_gpu(monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> None:
    monkeypatch.setattr(settings, "GPU_QUEUES", frozenset({"train"}))
    monkeypatch.setattr(fitness, "_FIND_GPU", "raise SystemExit(1)")


BROKEN = {
    UnfitReason.DATABASE: break_database,
    UnfitReason.ARTIFACTS: break_artifacts,
    UnfitReason.MIGRATIONS: break_migrations,
    UnfitReason.GPU: break_gpu,
}


@pytest.mark.parametrize("fault", BROKEN)
def test_an_unfit_worker_consumes_nothing_until_it_is_fit_again(
    marked: None, fault: UnfitReason, monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    consumer = Consumer("train", "light")
    thread = heartbeats._Heartbeat(consumer)
    thread.look(with_gpu=True)
    assert (thread.unfit, consumer.consumed) == (None, {"train", "light"})
    with monkeypatch.context() as broken:
        BROKEN[fault](broken, settings)
        thread.look(with_gpu=True)
        assert (thread.unfit, consumer.consumed) == (fault, set())
        thread.look(with_gpu=False)
        assert (thread.unfit, consumer.consumed) == (fault, set()), "it stays so until somebody has looked again"
    thread.look(with_gpu=True)
    assert (thread.unfit, consumer.consumed) == (None, {"train", "light"})


def test_a_queue_that_promises_no_gpu_needs_none(
    marked: None, monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    break_gpu(monkeypatch, settings)
    assert fitness.fault_of(["light", "score"]) is None
    assert fitness.fault_of(["train"]) == UnfitReason.GPU


def test_work_is_refused_with_the_reason_while_only_an_unfit_worker_is_there() -> None:
    heartbeats.beat("light@there", ["light"], UnfitReason.ARTIFACTS)
    with refusal("no_worker", match="is running, but takes no work: it does not see the installation's"):
        heartbeats.require("light")
    heartbeats.beat("light@here", ["light"])
    heartbeats.require("light")
    health = heartbeats.listening()["light"]
    assert (health.workers, health.unfit) == (1, (UnfitReason.ARTIFACTS,))


def test_a_worker_of_before_says_nothing_of_its_fitness() -> None:
    beat = json.dumps({"queues": ["light"], "at": heartbeats.redis_now()})
    redis_client.connection().hset(heartbeats.KEY, "light@before", beat)
    assert heartbeats.listening()["light"].alive


def test_health_and_the_project_say_that_a_worker_is_there_and_what_it_lacks(client: Client, marked: None) -> None:
    heartbeats.beat("light@there", ["light"], UnfitReason.ARTIFACTS)
    answer = client.get("/api/v1/health/ready/")
    said = "A worker of the queue 'light' is running, but takes no work: it does not see the installation's artifacts."
    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    assert (answer.json()["queues"]["light"]["unfit"], answer.json()["error"]) == (["artifacts"], said)
    project = make_project()
    found = list(issues(project, facts(project)))
    assert Issue(Problem.UNFIT_WORKER, {"why": said}) in found
    assert Problem.NO_LIGHT_WORKER not in {issue.problem for issue in found}


def test_the_models_page_says_it_too(client: Client, marked: None) -> None:
    heartbeats.beat("train@there", ["train"], UnfitReason.GPU)
    project = make_project()
    client.force_login(User.objects.create_superuser("root", password="only-for-tests"))
    page = client.get(f"/projects/{project.slug}/models/").content.decode()
    assert "it finds no GPU, although GPU_QUEUES promises one" in page
