"""Snapshots: what they hold, who has asked for one, and folders whose row is gone."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from annotator.models import Project
from annotator.models.jobs import Job


class Snapshot(models.Model):
    """The labels of a project at one moment, as files; the same labels give the same content hash.

    Triggers count the tasks that were redacted or deleted since: the files hold their text until they are erased.
    """

    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, db_index=False, related_name="snapshots", verbose_name=_("project")
    )
    content_hash = models.CharField(_("content hash"), max_length=64)
    path = models.CharField(_("path"), max_length=300, help_text=_("Relative to the artifacts folder."))
    manifest = models.JSONField(_("manifest"))
    train_tasks = models.PositiveIntegerField(_("training tasks"))
    validation_tasks = models.PositiveIntegerField(_("validation tasks"))
    labels = models.PositiveIntegerField(_("labels"), help_text=_("Labelled responses."))
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    redacted_tasks = models.PositiveIntegerField(db_default=0, help_text="redacted after it was taken")
    deleted_tasks = models.PositiveIntegerField(db_default=0, help_text="deleted after it was taken")
    marked_at = models.DateTimeField(null=True, blank=True, help_text="of the last of these")
    erasing_at = models.DateTimeField(null=True, blank=True, help_text="asked for; from then on nobody uses its files")
    erased_at = models.DateTimeField(null=True, blank=True, help_text="its files and those of its models are gone")

    class Meta:
        verbose_name = _("snapshot")
        verbose_name_plural = _("snapshots")
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["project", "content_hash"], name="snapshot_content_once_per_project")
        ]

    def __str__(self) -> str:
        size = f"{self.labels} labels, {self.preferences} preferences" if self.preferences else f"{self.labels} labels"
        return f"{self.content_hash[:12]} ({size})"

    @property
    def preferences(self) -> int:
        """The tasks with a preference."""
        counts = self.manifest.get("counts", {})
        return int(counts.get("train_preferences", 0) + counts.get("validation_preferences", 0))

    def directory(self) -> Path:
        return settings.ARTIFACTS / self.path

    def is_marked(self) -> bool:
        """Returns whether the snapshot holds texts that are to be forgotten, or was erased because it did."""
        return bool(self.marked_at or self.erasing_at or self.erased_at)


class SnapshotTask(models.Model):
    """A task that is in a snapshot. There is no foreign key, so that the row outlives the task."""

    pk = models.CompositePrimaryKey("task_id", "snapshot_id")
    task_id = models.BigIntegerField()
    snapshot = models.ForeignKey(Snapshot, on_delete=models.CASCADE, related_name="seen")

    def __str__(self) -> str:
        return f"task {self.task_id} in {self.snapshot_id}"


class SnapshotJob(Job):
    """Somebody's request for a snapshot, which the light worker builds.

    `tasks` have been written so far. The one that waits includes all labels of the time at which it was asked for.
    """

    class State(models.TextChoices):
        QUEUED = "queued"
        BUILDING = "building"
        DONE = "done"
        FAILED = "failed"

    UNDER_WAY = (State.QUEUED, State.BUILDING)

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="snapshot_jobs")
    requested_by = models.ForeignKey(
        "annotator.User", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    tasks = models.PositiveIntegerField(default=0, help_text="written so far")
    snapshot = models.ForeignKey(Snapshot, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    code = models.CharField(max_length=60, blank=True, help_text="of the refusal")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project"], condition=Q(state="queued"), name="one_queued_snapshot_job_per_project"
            ),
        ]

    def __str__(self) -> str:
        return f"snapshot job {self.pk} of {self.project}: {self.state}"


class OwnerlessFolder(models.Model):
    """A folder of a snapshot or a run whose row is gone, with its project; triggers note it for the sweep."""

    path = models.CharField(max_length=300, help_text="relative to the artifacts' folder")

    def __str__(self) -> str:
        return self.path
