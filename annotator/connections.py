"""Which of gunicorn's workers takes a new connection: the one with the fewest.

A connection that is kept alive stays with the process that accepted it, and whoever is awake accepts. Left at that, one
process may end up with all annotators, who wait for each other while the other process has nothing to do.
"""

import mmap
import time
from collections.abc import Iterable
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

GIVE_WAY_SECONDS = 0.01
"""For a worker with fewer connections to accept a new one; after that whoever has fewer is too busy."""
PLACES = 64
"""More than there are workers at any time, those that a reload replaces among them."""
_NOWHERE = PLACES
_GONE = 2**31 - 1

_held = memoryview(mmap.mmap(-1, 4 * (PLACES + 1))).cast("i")
"""Connections by the worker's place, in memory that all of them share. What has no place yet counts at the end."""
for _place in range(PLACES):
    _held[_place] = _GONE


class EvenWorker(ThreadWorker):  # type: ignore[misc]
    """gunicorn's worker with threads, whose number of connections the others can see."""

    place = _NOWHERE

    @property
    def nr_conns(self) -> int:
        return _held[self.place]

    @nr_conns.setter
    def nr_conns(self, number: int) -> None:
        _held[self.place] = number

    def accept(self, listener: Any) -> None:
        if self.nr_conns > min(_held[:PLACES]):
            time.sleep(GIVE_WAY_SECONDS)
        super().accept(listener)


def take_place(worker: EvenWorker, others: Iterable[EvenWorker]) -> None:
    """One that no other worker has, before the worker is forked."""
    worker.place = min(set(range(PLACES)) - {other.place for other in others}, default=_NOWHERE)
    worker.nr_conns = 0


def leave_place(worker: EvenWorker) -> None:
    """After the worker has ended, so that nobody waits for it to accept."""
    worker.nr_conns = _GONE
