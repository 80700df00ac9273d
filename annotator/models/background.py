"""Rows that workers leave for people and for each other: failures, requested work, and the installation's id."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class BackgroundFailure(models.Model):
    """A periodic task that fails for one project, or as a whole. The row is deleted when the task succeeds again."""

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
            # A task that fails as a whole has no project: with distinct NULLs it would get a row for every failure.
            models.UniqueConstraint(
                fields=["task", "project"], nulls_distinct=False, name="one_failure_per_task_and_project"
            )
        ]

    def __str__(self) -> str:
        return f"{self.task}: {self.error}"


class RecountWanted(models.Model):
    """A request to bring a project's tasks in line with changed numbers of its protocol."""

    project = models.ForeignKey("annotator.Project", on_delete=models.CASCADE, related_name="recounts_wanted")

    def __str__(self) -> str:
        return str(self.project)


class Installation(models.Model):
    """The only row holds the id that is also kept in a file in the artifacts folder.

    A process compares the two to learn whether it sees the installation's own folder.
    """

    artifacts_id = models.UUIDField()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(pk=1), name="one_installation")]

    def __str__(self) -> str:
        return str(self.artifacts_id)


class StoredFile(models.Model):
    """A file of the artifacts that an object store keeps (infrastructure/storage/store.py), by its content's hash.

    `path` is relative to the folder of the artifacts. Several paths may have one content. A file that is `gone` is
    nobody's any more; its row stays until the store has no such content, unless another file has it.
    """

    path = models.CharField(max_length=500)
    sha256 = models.CharField(max_length=64)
    bytes = models.BigIntegerField()
    stored_at = models.DateTimeField()
    gone = models.BooleanField(db_default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["path"], condition=Q(gone=False), name="stored_file_once", opclasses=["varchar_pattern_ops"]
            )
        ]
        indexes = [
            models.Index(fields=["sha256"], name="stored_file_by_content"),
            models.Index(fields=["id"], condition=Q(gone=True), name="stored_file_gone"),
        ]

    def __str__(self) -> str:
        return self.path
