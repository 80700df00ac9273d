"""What the rows of every queue have in common (annotator/infrastructure/jobs.py works through them)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import ClassVar

from django.db import models, transaction

removers: list[Callable[[Path], None]] = []
"""What removes a folder of the artifacts wherever it is; the store (infrastructure/storage/) puts itself here."""


def remove_on_commit(place: Path) -> None:
    """Has the files of a folder removed, everywhere, once this transaction is over."""
    for remove in removers:
        transaction.on_commit(partial(remove, place))


class Job(models.Model):
    """Work that somebody asked for: how far a worker is with it, and how it ended.

    `attempt` is a fencing number: a worker writes only while the number is its own. A job has a field `state`, which
    is one of `UNDER_WAY`, waiting and working, until the job has ended.
    """

    UNDER_WAY: ClassVar[tuple[str, str]]

    state: models.CharField[str, str]
    attempt = models.PositiveIntegerField(default=0, help_text="counts up with each worker")
    tries = models.PositiveSmallIntegerField(default=0, help_text="workers that were lost, and the current one")
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True

    def is_under_way(self) -> bool:
        """Returns whether a worker has it or will take it."""
        return self.state in self.UNDER_WAY
