"""Which Celery workers listen to which queue, by heartbeats in Redis.

Each worker beats from a thread, as a solo worker answers no ping while it trains. The web reads the beats, so that
asking for work that nobody would do is refused at once. Beats carry the time of Redis, whose clock is the only one that
all of them share.
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
    """Nobody listens to the queue that the work would go to."""

    status = 503
    code = "no_worker"


@dataclass(frozen=True)
class QueueHealth:
    """How many live workers a queue has, and the age in seconds of the youngest heartbeat ever seen on it."""

    workers: int
    heartbeat_age: float | None

    @property
    def alive(self) -> bool:
        return self.workers > 0


_connecting = threading.Lock()


def connection() -> "redis.Redis":
    """The process's one client, whose pool gives each thread a connection of its own.

    It is made under a lock: `cache` lets several threads make one each at the first call and keeps the last, and a
    client that nobody holds any more closes its pool beneath the thread that still reads from it.
    """
    with _connecting:
        return _client()


@cache
def _client() -> "redis.Redis":
    # Once more where Redis was started anew and the connection is stale; never after a wait, as pages wait with us.
    once = Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,))
    patience = dict.fromkeys(("socket_timeout", "socket_connect_timeout"), PATIENCE_SECONDS)
    return redis.Redis.from_url(settings.REDIS_URL, retry=once, **patience)


def listening() -> dict[str, QueueHealth]:
    """The health of every queue. Raises redis.RedisError where Redis does not answer."""
    with messages.without_waiting_twice(), connection().pipeline(transaction=False) as asked:
        asked.time()
        asked.hvals(KEY)
        (seconds, microseconds), values = asked.execute()
    now, beats = seconds + microseconds / 1e6, [json.loads(value) for value in values]
    limit = ALIVE_FOR_BEATS * settings.WORKER_HEARTBEAT_SECONDS
    health = {}
    for queue in QUEUES:
        ages = [max(now - beat["at"], 0.0) for beat in beats if queue in beat["queues"]]
        health[queue] = QueueHealth(sum(age < limit for age in ages), round(min(ages), 1) if ages else None)
    return health


def waiting(queue: str) -> int:
    """Messages of ordinary priority that lie in the queue. Raises redis.RedisError where Redis does not answer."""
    return int(connection().llen(queue))


def require(queue: str) -> None:
    """Raises NoWorker unless a live worker listens to the queue."""
    try:
        alive = listening()[queue].alive
    except redis.RedisError as down:
        _log.warning("no work can be handed out: %s", down)
        raise NoWorker("Redis does not answer, so no work can be started. Try again in a moment.") from down
    if not alive:
        raise NoWorker(
            f"No worker is running for the queue {queue!r}. Start one: celery -A annotator worker -Q {queue} --pool "
            "solo"
        )


def beat(name: str, queues: list[str]) -> None:
    connection().hset(KEY, name, json.dumps({"queues": queues, "at": redis_now()}))


def redis_now() -> float:
    """Seconds since 1970 by the clock of Redis."""
    seconds, microseconds = connection().time()
    return float(seconds + microseconds / 1e6)


def forget(name: str) -> None:
    connection().hdel(KEY, name)


class _Heartbeat(threading.Thread):
    """Beats until told to stop; a Redis that is away is only a missed beat."""

    def __init__(self, name: str, queues: list[str]) -> None:
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
        try:
            forget(self.worker)
        except redis.RedisError as down:
            _log.warning("could not sign off: %s", down)


_beating: list[_Heartbeat] = []
stopping = threading.Event()
"""Set in a worker that was asked to end: long work puts itself down where it can be taken up again."""


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
