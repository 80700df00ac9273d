"""What the workers leave for people and for each other: failures, work that is asked for, whose files these are."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class BackgroundFailure(models.Model):
    """A periodic task that fails for a project, or as a whole. The row goes when the task works again."""

    task = models.CharField(max_length=60)
    project = models.ForeignKey(
        "annotator.Project", on_delete=models.CASCADE, null=True, related_name="background_failures"
    )
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    times = models.PositiveIntegerField(default=1)
    error = models.CharField(max_length=500, help_text="of the last time, without secrets")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["task", "project"], nulls_distinct=False, name="one_failure_per_task_and_project"
            )
        ]

    def __str__(self) -> str:
        return f"{self.task}: {self.error}"


class RecountWanted(models.Model):
    """The project's tasks are to be brought in line with changed numbers of the protocol."""

    project = models.ForeignKey("annotator.Project", on_delete=models.CASCADE, related_name="recounts_wanted")

    def __str__(self) -> str:
        return str(self.project)


class Installation(models.Model):
    """One row: the id that the artifacts' folder bears in a file, so that every process knows whether it is the one."""

    artifacts_id = models.UUIDField()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(pk=1), name="one_installation")]

    def __str__(self) -> str:
        return str(self.artifacts_id)
