"""Tells a row how far its file is while a worker writes it, and the worker when it has to stop."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.db import InterfaceError, OperationalError, connection

from annotator.background import jobs
from annotator.db.clock import database_now
from annotator.models.jobs import Job
from annotator.storage import disk_space

BEAT_SECONDS = 1.0


class Pulse:
    """Writes `rows`, `bytes` and a heartbeat to a job's row, from a thread, which has a connection of its own.

    `expected` rows are written as well, once known.
    """

    def __init__(self, job: Job) -> None:
        self.rows = 0
        self.bytes = 0
        self.expected: int | None = None
        self._job = job
        self._over = threading.Event()
        self._reason: Exception | None = None

    def count(self) -> None:
        self.rows += 1

    def check(self) -> None:
        """Raises what ends the work: PutDown, Ended or DiskNearlyFull."""
        jobs.require_go_on()
        if self._reason:
            raise self._reason

    @contextmanager
    def beating(self) -> Iterator[None]:
        thread = threading.Thread(target=self._beat, name="pulse of a file", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _beat(self) -> None:
        try:
            while not self._over.wait(BEAT_SECONDS) and not self._reason:
                # While the database is away the beats are only missed.
                with suppress(OperationalError, InterfaceError):
                    self._reason = self._refusal()
        finally:
            connection.close()

    def _refusal(self) -> Exception | None:
        try:
            disk_space.require_room()
        except disk_space.DiskNearlyFull as full:
            return full
        written = {"rows_done": self.rows, "bytes_done": self.bytes, "heartbeat_at": database_now()}
        if self.expected is not None:
            written["rows_expected"] = self.expected
        return None if jobs.owned(self._job).update(**written) else jobs.Ended()
