"""Whether the process lives, and whether everything it needs answers."""

import pytest
import redis
from django.test import Client
from redis.backoff import NoBackoff
from redis.retry import Retry

from annotator.infrastructure.background import heartbeats


@pytest.fixture
def redis_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "connection", lambda: redis.Redis(port=1, retry=Retry(NoBackoff(), 0)))


def test_live_needs_nothing(client: Client) -> None:
    assert client.get("/api/v1/health/live/").json() == {"status": "alive"}


def test_ready_names_every_queue(client: Client, db: None) -> None:
    answer = client.get("/api/v1/health/ready/")
    silent: dict[str, object] = {"workers": 0, "heartbeat_age": None, "unfit": []}
    assert answer.json() == {
        "status": "ready",
        "database": True,
        "redis": True,
        "queues": dict.fromkeys(heartbeats.QUEUES, silent),
        "disk": True,
        "artifacts": True,
        "migrated": True,
        "static_files": True,
        "failures": 0,
        "error": "",
    }


def test_ready_tells_the_age_of_a_heartbeat(client: Client, db: None) -> None:
    heartbeats.beat("w1", ["train"])
    try:
        train = client.get("/api/v1/health/ready/").json()["queues"]["train"]
    finally:
        heartbeats.forget("w1")
    assert train["workers"] == 1
    assert 0 <= train["heartbeat_age"] < 5


def test_without_redis_it_is_not_ready(client: Client, db: None, redis_is_down: None) -> None:
    answer = client.get("/api/v1/health/ready/")
    assert answer.status_code == 503
    assert (answer.json()["status"], answer.json()["redis"], answer.json()["queues"]) == ("unavailable", False, {})
