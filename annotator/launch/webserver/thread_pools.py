"""Thread pools by kind of request: those that wait or stream have threads of their own and never take the pages'."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from waitress.channel import HTTPChannel
from waitress.task import ThreadedTaskDispatcher
from waitress.utilities import Error

from annotator.web import body_limits
from annotator.web.error_answers import error_json

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


_VERIFIED = re.compile(r"/api/v1/reward-models/\d+/verification/|/admin/reward-models/\d+/verify/")


@dataclass(frozen=True)
class Lane:
    """A pool of threads: which requests it serves, by method and path, with how many threads, and how many may wait."""

    name: str
    serves: Callable[[str, str], bool]
    threads: int
    waiting: int


def lanes(threads: int) -> tuple[Lane, ...]:
    """The lanes in order: a request goes to the first that serves it, and the last serves every request."""
    few = max(1, threads // 2)
    return (
        # Answered while every other thread is busy, and whatever the database does.
        Lane("live", lambda _method, path: path == LIVE, 1, 1_000),
        Lane("ready", lambda _method, path: path.startswith("/api/v1/health/"), 1, 100),
        # A trainer's call waits for the score worker.
        Lane("rewards", lambda _method, path: path.startswith("/api/v1/openrlhf/"), threads, 4 * threads),
        # A slow client's download holds its thread for as long as it lasts.
        Lane("exports", lambda _method, path: path.endswith("/export/"), few, 4 * few),
        Lane("imports", lambda method, path: method == "POST" and body_limits.takes_files(path), few, 4 * few),
        # Hashing the files of a model takes as long as they are large.
        Lane("artifacts", lambda _method, path: _VERIFIED.fullmatch(path) is not None, 1, 4),
        Lane("pages", lambda _method, path: True, threads, 10_000),
    )


def most_threads(threads: int) -> int:
    """How many database connections one process may want at once: one a thread."""
    return sum(lane.threads for lane in lanes(threads))


class Lanes:
    """A task dispatcher for waitress that chooses the lane by the method and the path of the request."""

    def __init__(self, threads: int) -> None:
        self._lanes = [(lane, ThreadedTaskDispatcher()) for lane in lanes(threads)]
        for lane, dispatcher in self._lanes:
            dispatcher.set_thread_count(lane.threads)

    def add_task(self, channel: HTTPChannel) -> None:
        # Called from the one thread that reads every socket: nothing here may wait.
        request = channel.requests[0]
        lane, dispatcher = self._of(request.command, request.path)
        if request.asking and channel.server.large_bodies() > MOST_LARGE_BODIES:
            request.error = Busy("")
        if request.asking or request.error:
            dispatcher = self._lanes[-1][1]
        elif len(dispatcher.queue) >= lane.waiting:
            request.error, dispatcher = Busy(""), self._lanes[-1][1]
        dispatcher.add_task(channel)

    def _of(self, method: str, path: str) -> tuple[Lane, ThreadedTaskDispatcher]:
        return next(pair for pair in self._lanes if pair[0].serves(method, path))

    def shutdown(self) -> None:
        """Lets the process end with its threads: nobody waits for those that are still at work."""
        for _, dispatcher in self._lanes:
            dispatcher.set_thread_count(0)
