"""Knows which Celery workers listen to which queue, by heartbeats in Redis.

Each worker sends heartbeats from a thread, because a solo worker answers no ping while it trains. The web reads them,
so that it can refuse work at once if nobody would do it. Heartbeats carry the time of Redis, whose clock is the only
one that all processes share.
"""

import json
import logging
import threading
from dataclasses import dataclass
from functools import cache
from typing import Any

import redis
from celery.signals import beat_init, worker_ready, worker_shutting_down
from django.conf import settings
from django.utils.translation import gettext as _
from redis.backoff import NoBackoff
from redis.retry import Retry

from annotator.background import messages
from annotator.celery import PATIENCE_SECONDS
from annotator.refusals import Refusal
from annotator.storage import artifacts

QUEUES = ("light", "train", "score")
KEY = "rewardloop:workers"
ALIVE_FOR_BEATS = 4
_log = logging.getLogger(__name__)


class NoWorker(Refusal):
    """No live worker listens to the queue that the work would go to."""

    status = 503
    code = "no_worker"


@dataclass(frozen=True)
class QueueHealth:
    """The number of live workers of a queue, and the age in seconds of the latest heartbeat that is known of it."""

    workers: int
    heartbeat_age: float | None

    @property
    def alive(self) -> bool:
        return self.workers > 0


_connecting = threading.Lock()


def connection() -> "redis.Redis":
    """Returns the process's only client, whose pool gives each thread a connection of its own."""
    # Without the lock, `cache` would let several threads make a client each at the first call, and keep the last. The
    # other clients, which nobody references, would close their pools while a thread still reads from them.
    with _connecting:
        return _client()


@cache
def _client() -> "redis.Redis":
    # One retry, for a connection that is stale because Redis was restarted; none after a timeout, as pages wait for us.
    retry = Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,))
    patience = dict.fromkeys(("socket_timeout", "socket_connect_timeout"), PATIENCE_SECONDS)
    return redis.Redis.from_url(settings.REDIS_URL, retry=retry, **patience)


def listening() -> dict[str, QueueHealth]:
    """Returns the health of every queue. Raises redis.RedisError if Redis does not answer."""
    # The time comes with the heartbeats, in one round trip: pages wait for this.
    with messages.without_waiting_twice(), connection().pipeline(transaction=False) as pipeline:
        pipeline.time()
        pipeline.hvals(KEY)
        (seconds, microseconds), values = pipeline.execute()
    now, beats = seconds + microseconds / 1e6, [json.loads(value) for value in values]
    limit = ALIVE_FOR_BEATS * settings.WORKER_HEARTBEAT_SECONDS
    health = {}
    for queue in QUEUES:
        ages = [max(now - beat["at"], 0.0) for beat in beats if queue in beat["queues"]]
        health[queue] = QueueHealth(sum(age < limit for age in ages), round(min(ages), 1) if ages else None)
    return health


def waiting(queue: str) -> int:
    """Returns the number of messages of ordinary priority in the queue. Raises redis.RedisError if Redis is away."""
    return int(connection().llen(queue))


def require(queue: str) -> None:
    """Raises NoWorker unless a live worker listens to the queue."""
    try:
        alive = listening()[queue].alive
    except redis.RedisError as down:
        _log.warning("no work can be handed out: %s", down)
        raise NoWorker(_("Redis does not answer, so no work can be started. Try again in a moment.")) from down
    if not alive:
        text = _(
            "No worker is running for the queue '%(queue)s'. Start one: celery -A annotator worker -Q %(queue)s --pool "
            "solo"
        )
        raise NoWorker(text % {"queue": queue})


def beat(name: str, queues: list[str]) -> None:
    connection().hset(KEY, name, json.dumps({"queues": queues, "at": redis_now()}))


def redis_now() -> float:
    """Returns the seconds since 1970 by the clock of Redis."""
    seconds, microseconds = connection().time()
    return float(seconds + microseconds / 1e6)


def forget(name: str) -> None:
    connection().hdel(KEY, name)


class _Heartbeat(threading.Thread):
    """Sends heartbeats until it is stopped. While Redis is away the heartbeats are only missed."""

    def __init__(self, name: str, queues: list[str]) -> None:
        # A daemon, so that a worker which ends without the signal does not wait for this thread.
        super().__init__(name="heartbeat", daemon=True)
        self.worker, self.queues, self.stopped = name, queues, threading.Event()

    def run(self) -> None:
        while not self.stopped.is_set():
            try:
                beat(self.worker, self.queues)
            except redis.RedisError as down:
                _log.warning("no heartbeat: %s", down)
            self.stopped.wait(settings.WORKER_HEARTBEAT_SECONDS)

    def stop(self) -> None:
        self.stopped.set()
        # Signing off shows the queue as unserved at once, and not only when the heartbeat is too old.
        try:
            forget(self.worker)
        except redis.RedisError as down:
            _log.warning("could not sign off: %s", down)


_beating: list[_Heartbeat] = []
stopping = threading.Event()
"""Set in a worker that was asked to end. Long work checks it, and stops at a point from which it can be resumed."""


@worker_ready.connect
@beat_init.connect
def _look_at_files(**_: Any) -> None:
    artifacts.report_at_start()


@worker_ready.connect
def _start(sender: Any, **_: Any) -> None:
    thread = _Heartbeat(sender.hostname, [queue.name for queue in sender.task_consumer.queues])
    _beating.append(thread)
    thread.start()


@worker_shutting_down.connect
def _stop(**_: Any) -> None:
    stopping.set()
    while _beating:
        _beating.pop().stop()
