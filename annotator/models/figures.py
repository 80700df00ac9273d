"""The figures of a project's overview, as they were last counted."""

from __future__ import annotations

from django.db import models


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
