"""Knows which Celery workers listen to which queue, by heartbeats in Redis, and which of them can work.

Each worker sends heartbeats from a thread, because a solo worker answers no ping while it trains. The web reads them,
so that it can refuse work at once if nobody would do it. Heartbeats carry the time of Redis, whose clock is the only
one that all processes share. A worker that is unfit (fitness.py) says so in its heartbeats and consumes nothing.
"""

import json
import logging
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import redis
from celery.signals import beat_init, worker_ready, worker_shutting_down
from django.conf import settings
from django.db import connection as database
from django.utils.translation import gettext as _

from annotator.infrastructure.background import fitness, messages
from annotator.infrastructure.background.fitness import UnfitReason
from annotator.infrastructure.background.redis_client import connection
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.stopping import stopping
from annotator.infrastructure.storage import artifacts, store, working_copies

QUEUES = ("light", "train", "score")
KEY = "rewardloop:workers"
ALIVE_FOR_BEATS = 4
BEATS_A_LOOK = 3
"""A fit worker looks at every third heartbeat whether it still is, an unfit one at each."""
LOOKS_A_SWEEP = 40
BEATS_A_GPU = 60
"""Looking for a GPU takes seconds of a processor."""
YIELD_SECONDS = 1.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class QueueHealth:
    """The live workers of a queue that take work, the age in seconds of the latest heartbeat, and what is amiss.

    `unfit` says of each live worker that takes no work why it does not.
    """

    workers: int
    heartbeat_age: float | None
    unfit: tuple[UnfitReason, ...] = ()

    @property
    def alive(self) -> bool:
        return self.workers > 0


@dataclass(frozen=True)
class Worker:
    """A worker as its last heartbeat tells of it, `age` seconds ago."""

    name: str
    queues: tuple[str, ...]
    age: float
    unfit: UnfitReason | None

    @property
    def alive(self) -> bool:
        return self.age < ALIVE_FOR_BEATS * settings.WORKER_HEARTBEAT_SECONDS


def workers() -> list[Worker]:
    """Returns the workers that have not signed off, by name. Raises redis.RedisError if Redis does not answer."""
    # The time comes with the heartbeats, in one round trip: pages wait for this.
    with messages.without_waiting_twice(), connection().pipeline(transaction=False) as pipeline:
        pipeline.time()
        pipeline.hgetall(KEY)
        (seconds, microseconds), beats = pipeline.execute()
    now = seconds + microseconds / 1e6
    found = []
    for name in sorted(beats):
        beat = json.loads(beats[name])
        unfit = UnfitReason(beat["unfit"]) if beat.get("unfit") else None
        found.append(Worker(name.decode(), tuple(beat["queues"]), round(max(now - beat["at"], 0.0), 1), unfit))
    return found


def listening() -> dict[str, QueueHealth]:
    """Returns the health of every queue. Raises redis.RedisError if Redis does not answer."""
    return by_queue(workers())


def by_queue(known: Iterable[Worker]) -> dict[str, QueueHealth]:
    known, health = list(known), {}
    for queue in QUEUES:
        theirs = [worker for worker in known if queue in worker.queues]
        health[queue] = QueueHealth(
            sum(worker.alive and not worker.unfit for worker in theirs),
            min((worker.age for worker in theirs), default=None),
            tuple(worker.unfit for worker in theirs if worker.alive and worker.unfit),
        )
    return health


def waiting(queue: str) -> int:
    """Returns the number of messages of ordinary priority in the queue. Raises redis.RedisError if Redis is away."""
    return int(connection().llen(queue))


def waiting_of_any(queue: str) -> int:
    """Returns the number of messages in the queue, of all priorities. Raises redis.RedisError if Redis is away."""
    # Redis has a list for each of kombu's steps; the first one bears the queue's name.
    return waiting(queue) + sum(int(connection().llen(f"{queue}\x06\x16{step}")) for step in (3, 6, 9))


def require(queue: str) -> None:
    """Raises Refusal unless a live worker listens to the queue."""
    try:
        health = listening()[queue]
    except redis.RedisError as down:
        _log.warning("no work can be handed out: %s", down)
        raise Refusal(
            _("Redis does not answer, so no work can be started. Try again in a moment."), code="no_worker", status=503
        ) from down
    if health.unfit and not health.alive:
        raise Refusal(idle_in_words(queue, health.unfit[0]), code="no_worker", status=503)
    if not health.alive:
        text = _(
            "No worker is running for the queue '%(queue)s'. Start one: celery -A annotator worker -Q %(queue)s --pool "
            "solo"
        )
        raise Refusal(text % {"queue": queue}, code="no_worker", status=503)


def idle_in_words(queue: str, fault: UnfitReason) -> str:
    """Says that a worker is there and takes no work, and why."""
    text = _("A worker of the queue '%(queue)s' is running, but takes no work: %(reason)s.")
    return text % {"queue": queue, "reason": fitness.WORDS[fault]}


def beat(name: str, queues: list[str], unfit: UnfitReason | None = None) -> None:
    """Says in Redis that the worker lives. Raises redis.RedisError."""
    connection().hset(KEY, name, json.dumps({"queues": queues, "at": redis_now(), "unfit": unfit}))


def redis_now() -> float:
    """Returns the seconds since 1970 by the clock of Redis."""
    seconds, microseconds = connection().time()
    return float(seconds + microseconds / 1e6)


def forget(name: str) -> None:
    connection().hdel(KEY, name)


class _Heartbeat(threading.Thread):
    """Sends heartbeats until it is stopped, and has an unfit worker consume nothing until it is fit again.

    While Redis is away the heartbeats are only missed.
    """

    def __init__(self, consumer: Any) -> None:
        # A daemon, so that a worker which ends without the signal does not wait for this thread.
        super().__init__(name="heartbeat", daemon=True)
        self.worker, self.queues = consumer.hostname, [queue.name for queue in consumer.task_consumer.queues]
        self.stopped, self.wanted = threading.Event(), threading.Event()
        self.unfit: UnfitReason | None = None
        self._consumer = consumer
        self._beats = 0

    def run(self) -> None:
        while not self.stopped.is_set():
            try:
                beat(self.worker, self.queues, self.unfit)
            except redis.RedisError as down:
                _log.warning("no heartbeat: %s", down)
            look_now = self.wanted.wait(settings.WORKER_HEARTBEAT_SECONDS)
            self.wanted.clear()
            self._beats += 1
            if self.stopped.is_set():
                return
            if look_now or self.unfit or not self._beats % BEATS_A_LOOK:
                self.look(with_gpu=look_now or self._beats % BEATS_A_GPU == 0)

    def look(self, *, with_gpu: bool) -> None:
        """Looks at what the worker needs, and starts or stops consuming where that has changed."""
        before = self.unfit
        known_gpu = before == UnfitReason.GPU and not with_gpu
        self.unfit = fitness.fault_of(self.queues if with_gpu else ()) or (UnfitReason.GPU if known_gpu else None)
        if bool(before) == bool(self.unfit):
            return
        if self.unfit:
            _log.error("This worker takes no work: %s.", fitness.WORDS[self.unfit])
        else:
            _log.warning("This worker takes work again.")
        change = self._consumer.cancel_task_queue if self.unfit else self._consumer.add_task_queue
        for queue in self.queues:
            # In the worker's own loop, to which its connection belongs; a solo worker gets there between two tasks.
            self._consumer.call_soon(change, queue)

    def stop(self) -> None:
        self.stopped.set()
        self.wanted.set()
        # Signing off shows the queue as unserved at once, and not only when the heartbeat is too old.
        try:
            forget(self.worker)
        except redis.RedisError as down:
            _log.warning("could not sign off: %s", down)


class _Tidying(threading.Thread):
    """Removes this host's copies of artifacts that were erased elsewhere, or that it has no room for.

    It is no part of the heartbeat, which must not wait for a disk or the database.
    """

    def __init__(self) -> None:
        super().__init__(name="copies of artifacts", daemon=True)
        self.stopped = threading.Event()

    def run(self) -> None:
        number = 0
        while not self.stopped.wait(BEATS_A_LOOK * settings.WORKER_HEARTBEAT_SECONDS):
            number += 1
            try:
                artifacts.require_ours()
                working_copies.tidy()
                if number % LOOKS_A_SWEEP == 1:
                    working_copies.sweep()
            except Exception as error:  # noqa: BLE001  the next turn must come, whatever is amiss with a file or the database
                _log.warning("the copies of the artifacts cannot be tidied now: %s", error)
            finally:
                database.close()

    def stop(self) -> None:
        self.stopped.set()


_beating: list[_Heartbeat | _Tidying] = []


def takes_work() -> bool:
    """Returns whether this worker may take another job: it was not asked to end, and it sees the artifacts."""
    if stopping.is_set():
        return False
    try:
        fitness.require_artifacts()
    except fitness.Unfit:
        look_now()
        return False
    return True


def look_now() -> None:
    """Has this worker look at once whether it is fit. A job asks for it whose worker was not."""
    for thread in _beating:
        if isinstance(thread, _Heartbeat):
            thread.wanted.set()


def hand_on(task: str, arguments: Sequence[int], **options: Any) -> None:
    """Sends a message on from a worker that cannot do the work, once it has had time to stop consuming."""
    look_now()
    # Otherwise the message could come back to this worker at once, again and again.
    time.sleep(YIELD_SECONDS)
    messages.send(task, arguments, **options)


@worker_ready.connect
@beat_init.connect
def _look_at_files(**_: Any) -> None:
    artifacts.report_at_start()


@worker_ready.connect
def _start(sender: Any, **_: Any) -> None:
    thread = _Heartbeat(sender)
    _beating.append(thread)
    # Before the first message is read.
    thread.look(with_gpu=True)
    thread.start()
    if store.is_remote():
        tidying = _Tidying()
        _beating.append(tidying)
        tidying.start()


@worker_shutting_down.connect
def _stop(**_: Any) -> None:
    stopping.set()
    while _beating:
        _beating.pop().stop()
