"""Which workers listen, as their heartbeats tell."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
import redis
from django.conf import LazySettings

from annotator.infrastructure.background import heartbeats, redis_client
from tests.refusals import refusal


@pytest.fixture(autouse=True)
def _silence() -> None:
    redis_client.connection().delete(heartbeats.KEY)


def test_without_a_heartbeat_nobody_listens() -> None:
    assert not heartbeats.listening()["train"].alive
    with refusal("no_worker", match="celery -A annotator worker -Q train"):
        heartbeats.require("train")


def test_a_worker_that_beats_is_listening() -> None:
    heartbeats.beat("train@here", ["train"])
    health = heartbeats.listening()
    assert (health["train"].workers, health["score"].workers) == (1, 0)
    heartbeats.require("train")


def test_a_worker_may_listen_to_several_queues() -> None:
    heartbeats.beat("all@here", ["light", "train", "score"])
    assert all(health.alive for health in heartbeats.listening().values())


def test_a_silent_worker_is_not_listening() -> None:
    last = json.dumps({"queues": ["train"], "at": time.time() - 60})
    redis_client.connection().hset(heartbeats.KEY, "train@here", last)
    queue_health = heartbeats.listening()["train"]
    assert not queue_health.alive
    assert queue_health.heartbeat_age is not None
    assert queue_health.heartbeat_age > 50


def test_a_worker_that_signs_off_is_gone() -> None:
    heartbeats.beat("train@here", ["train"])
    heartbeats.forget("train@here")
    assert heartbeats.listening()["train"].heartbeat_age is None


def test_a_redis_that_is_away_is_said_within_seconds(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    monkeypatch.setattr(heartbeats, "connection", lambda: redis_client._client.__wrapped__(0.7, 1))
    began = time.monotonic()
    with refusal("no_worker", match="Redis does not answer"):
        heartbeats.require("train")
    assert time.monotonic() - began < 5
    with pytest.raises(redis.RedisError):
        heartbeats.listening()


def test_threads_that_connect_for_the_first_time_at_one_moment_share_one_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, threads = redis.Redis.from_url, 8
    together = Barrier(threads)

    def made_slowly(*arguments: Any, **options: Any) -> redis.Redis:
        time.sleep(0.05)
        return made(*arguments, **options)

    def connected() -> redis.Redis:
        together.wait()
        return redis_client.connection()

    monkeypatch.setattr(redis.Redis, "from_url", made_slowly)
    redis_client._client.cache_clear()
    with ThreadPoolExecutor(threads) as pool:
        clients = [future.result() for future in [pool.submit(connected) for _ in range(threads)]]
    assert len({id(client) for client in clients}) == 1
