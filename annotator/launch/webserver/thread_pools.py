"""Thread pools by kind of request: those that wait or stream have threads of their own and never take the pages'.

Within such a pool nobody holds more than a share of the threads: neither a project, nor a login, nor an account.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from waitress.channel import HTTPChannel
from waitress.task import ThreadedTaskDispatcher
from waitress.utilities import Error

from annotator.infrastructure.web import body_limits
from annotator.infrastructure.web.error_answers import error_json

LIVE = "/api/v1/health/live/"
RETRY_AFTER_SECONDS = 1
MOST_LARGE_BODIES = 32
"""Large bodies that may arrive in one process at once, so that no number of senders fills the disk."""


class Busy(Error):  # type: ignore[misc]
    """The refusal of a request whose lane is full: all of its threads work and its queue has no place left."""

    code = 429
    reason = "Too Many Requests"

    def to_response(self, ident: str | None = None) -> tuple[str, list[tuple[str, str]], bytes]:
        detail = "As many such requests as this server takes at once are under way. Send it again in a moment."
        headers = [("Content-Type", "application/json"), ("Retry-After", str(RETRY_AFTER_SECONDS))]
        return f"{self.code} {self.reason}", headers, error_json(detail, code="busy")


_PROJECT = re.compile(r"/projects/[^/]+/|/openrlhf/[^/]+/")
_SYNCHRONOUS = re.compile(r"/api/v1/projects/[^/]+/import/")
_VERIFIED = re.compile(r"/api/v1/reward-models/\d+/verification/|/admin/reward-models/\d+/verify/")


@dataclass(frozen=True)
class Lane:
    """A pool of threads: which requests it serves, by method and path, with how many threads, and how many may wait.

    A sender holds at most `share` of the threads, and half of the places to wait; 0: as many as there are.
    """

    name: str
    serves: Callable[[str, str], bool]
    threads: int
    waiting: int
    share: int = 0


def lanes(threads: int) -> tuple[Lane, ...]:
    """The lanes in order: a request goes to the first that serves it, and the last serves every request."""
    few = max(2, threads // 2)
    half, less = few // 2, max(1, threads - 1)
    return (
        # Answered while every other thread is busy, and whatever the database does.
        Lane("live", lambda _method, path: path == LIVE, 1, 1_000),
        Lane("ready", lambda _method, path: path.startswith("/api/v1/health/"), 1, 100),
        # Health does not wait for its counts.
        Lane("metrics", lambda _method, path: path == "/metrics", 1, 4),
        # A trainer's call waits for the score worker.
        Lane("rewards", lambda _, path: path.startswith("/api/v1/openrlhf/"), max(2, threads), 8 * threads, less),
        # A slow client's download holds its thread for as long as it lasts.
        Lane("exports", lambda _method, path: path.endswith("/export/"), few, 8 * few, half),
        Lane("imports", lambda verb, path: verb == "POST" and bool(_SYNCHRONOUS.fullmatch(path)), few, 8 * few, half),
        # These only keep the file: they do not wait for the imports above.
        Lane("uploads", lambda method, path: method == "POST" and body_limits.takes_files(path), few, 8 * few, half),
        # Hashing the files of a model takes as long as they are large.
        Lane("artifacts", lambda _method, path: _VERIFIED.fullmatch(path) is not None, 1, 4),
        Lane("pages", lambda _method, path: True, threads, 10_000),
    )


def most_threads(threads: int) -> int:
    """How many database connections one process may want at once: one a thread."""
    return sum(lane.threads for lane in lanes(threads))


class Held:
    """A request that waits for a thread of its lane or has one, and the senders on whose shares it counts."""

    def __init__(self, channel: HTTPChannel, pool: "Pool") -> None:
        self.channel, self.pool = channel, pool
        self.senders = senders_of(channel.requests[0]) if pool.share else set()

    def service(self) -> None:
        self.channel.share = self.take_for if self.pool.share else None
        try:
            self.channel.service()
        finally:
            self.pool.give_back(self.senders)

    def take_for(self, account: int) -> bool:
        """Counts the request on the account's share as well, once it is known; returns False if there is no more."""
        sender = f"account {account}"
        with self.pool.lock:
            if not self.pool.queue.has_share({sender}):
                return False
            self.pool.queue.held[sender] += 1
            self.senders.add(sender)
            return True

    def cancel(self) -> None:
        self.channel.cancel()


def senders_of(request: Any) -> set[str]:
    """Returns the project that the request is about, and the login that it comes with."""
    project = _PROJECT.search(request.path)
    login = "\n".join(request.headers.get(name, "") for name in ("AUTHORIZATION", "X_API_KEY", "COOKIE"))
    return {project[0] if project else "", sha256(login.encode(errors="replace")).hexdigest()}


class _Queue:
    """What waits for the threads of a pool. Next is the oldest request whose senders have not used up their shares."""

    def __init__(self, share: int) -> None:
        self.share = share
        self.held: Counter[str] = Counter()
        self._waiting: list[Held] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def __bool__(self) -> bool:
        return self._next() is not None

    def has_share(self, senders: set[str]) -> bool:
        return not self.share or all(self.held[sender] < self.share for sender in senders)

    def waiting_for(self, senders: set[str]) -> int:
        """Counts the requests that wait for the sender of whom most do."""
        return max((sum(sender in held.senders for held in self._waiting) for sender in senders), default=0)

    def append(self, held: Held) -> None:
        self._waiting.append(held)

    def popleft(self) -> Held:
        number = self._next()
        if number is None:  # at the end of the process, all that waits is cancelled
            return self._waiting.pop(0)
        held = self._waiting.pop(number)
        self.held.update(held.senders)
        return held

    def _next(self) -> int | None:
        return next((number for number, held in enumerate(self._waiting) if self.has_share(held.senders)), None)


class Pool(ThreadedTaskDispatcher):  # type: ignore[misc]
    """The threads of one lane."""

    def __init__(self, lane: Lane) -> None:
        super().__init__()
        self.share, self._waiting = lane.share, lane.waiting
        self.queue = _Queue(lane.share)
        self.set_thread_count(lane.threads)

    def has_room(self, held: Held) -> bool:
        with self.lock:
            if len(self.queue) >= self._waiting:
                return False
            return not self.share or self.queue.waiting_for(held.senders) < self._waiting // 2

    def give_back(self, senders: set[str]) -> None:
        with self.lock:
            self.queue.held -= Counter(senders)  # keeps no zeros
            self.queue_cv.notify_all()


class Lanes:
    """A task dispatcher for waitress that chooses the lane by the method and the path of the request."""

    def __init__(self, threads: int) -> None:
        self._lanes = [(lane, Pool(lane)) for lane in lanes(threads)]

    def add_task(self, channel: HTTPChannel) -> None:
        # Called from the one thread that reads every socket: nothing here may wait.
        request = channel.requests[0]
        pool = next(pool for lane, pool in self._lanes if lane.serves(request.command, request.path))
        if request.awaiting_permission and channel.server.large_bodies() > MOST_LARGE_BODIES:
            request.error = Busy("")
        if request.awaiting_permission or request.error:
            pool = self._lanes[-1][1]
        elif not pool.has_room(Held(channel, pool)):
            request.error, pool = Busy(""), self._lanes[-1][1]
        pool.add_task(Held(channel, pool))

    def shutdown(self) -> None:
        """Lets the process end with its threads: nobody waits for those that are still at work."""
        for _, pool in self._lanes:
            pool.set_thread_count(0)
