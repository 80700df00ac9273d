"""Which workers listen, as their heartbeats tell."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
import redis
from django.conf import LazySettings

from annotator import workers
from annotator.workers import NoWorker


@pytest.fixture(autouse=True)
def _silence() -> None:
    workers.connection().delete(workers.KEY)


def test_without_a_heartbeat_nobody_listens() -> None:
    assert not workers.listening()["train"].alive
    with pytest.raises(NoWorker, match="celery -A annotator worker -Q train"):
        workers.require("train")


def test_a_worker_that_beats_is_listening() -> None:
    workers.beat("train@here", ["train"])
    health = workers.listening()
    assert (health["train"].workers, health["score"].workers) == (1, 0)
    workers.require("train")


def test_a_worker_may_listen_to_several_queues() -> None:
    workers.beat("all@here", ["light", "train", "score"])
    assert all(health.alive for health in workers.listening().values())


def test_a_silent_worker_is_not_listening() -> None:
    last = json.dumps({"queues": ["train"], "at": time.time() - 60})
    workers.connection().hset(workers.KEY, "train@here", last)
    found = workers.listening()["train"]
    assert not found.alive
    assert found.heartbeat_age is not None
    assert found.heartbeat_age > 50


def test_a_worker_that_signs_off_is_gone() -> None:
    workers.beat("train@here", ["train"])
    workers.forget("train@here")
    assert workers.listening()["train"].heartbeat_age is None


def test_a_redis_that_is_away_is_said_within_seconds(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    monkeypatch.setattr(workers, "connection", workers._client.__wrapped__)
    began = time.monotonic()
    with pytest.raises(NoWorker, match="Redis does not answer"):
        workers.require("train")
    assert time.monotonic() - began < 5
    with pytest.raises(redis.RedisError):
        workers.listening()


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
        return workers.connection()

    monkeypatch.setattr(redis.Redis, "from_url", made_slowly)
    workers._client.cache_clear()
    with ThreadPoolExecutor(threads) as pool:
        clients = [future.result() for future in [pool.submit(connected) for _ in range(threads)]]
    assert len({id(client) for client in clients}) == 1
