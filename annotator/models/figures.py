"""The figures of a project's overview, as they were last counted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import models


@dataclass(frozen=True)
class Progress:
    """How many tasks of a project are in each state, gold tasks left out. `as_of` is None if they were just counted."""

    as_of: datetime | None = None
    open: int = 0
    complete: int = 0
    quarantined: int = 0
    retired: int = 0

    @property
    def total(self) -> int:
        return self.open + self.complete + self.quarantined + self.retired

    @property
    def percent(self) -> int:
        """The share that is complete, rounded; 0 without tasks."""
        return round(100 * self.complete / self.total) if self.total else 0


class ProjectFigures(models.Model):
    """Counts that a page must not make anew each time. They can be deleted: the next look counts them again.

    `took` is how many seconds the count needed, and `wanted_at` when the light worker was last asked for a new one.
    """

    project = models.OneToOneField(
        "annotator.Project", on_delete=models.CASCADE, primary_key=True, related_name="figures"
    )
    figures = models.JSONField(default=dict)
    as_of = models.DateTimeField(null=True)
    took = models.FloatField(default=0)
    wanted_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"figures of {self.project}"
