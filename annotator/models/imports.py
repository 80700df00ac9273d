"""Imported files, whose tasks can be taken back, and the jobs that import them."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from annotator.models.jobs import Job, remove_on_commit


class ImportQuerySet(models.QuerySet["Import"]):
    def being_taken_back(self) -> ImportQuerySet:
        """Returns imports that somebody has taken back and whose tasks are not all deleted yet."""
        return self.filter(taken_back_at__isnull=False, all_gone_at__isnull=True)


class Import(models.Model):
    """One file that created tasks, read to its end or as far as reading got.

    Its tasks refer to it, and their ids lie between `first_task` and `last_task`. `removed` counts the tasks deleted
    since the import was taken back; tasks that somebody rated meanwhile stay.
    """

    project = models.ForeignKey("annotator.Project", on_delete=models.CASCADE, related_name="imports", db_index=False)
    by = models.ForeignKey(
        "annotator.User",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="empty: a command",
    )
    made_at = models.DateTimeField()
    file_name = models.CharField(max_length=200, blank=True)
    file_hash = models.CharField(max_length=64, blank=True, help_text="SHA-256 of the bytes as they came")
    file_bytes = models.BigIntegerField(default=0)
    layouts = ArrayField(models.CharField(max_length=20), default=list)
    created = models.PositiveIntegerField(default=0)
    existing = models.PositiveIntegerField(default=0)
    rejected = models.PositiveIntegerField(default=0)
    first_task = models.BigIntegerField(null=True, blank=True)
    last_task = models.BigIntegerField(null=True, blank=True)
    taken_back_at = models.DateTimeField(null=True, blank=True)
    taken_back_by = models.ForeignKey(
        "annotator.User", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    removed = models.PositiveIntegerField(default=0)
    all_gone_at = models.DateTimeField(null=True, blank=True)

    objects = ImportQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(all_gone_at__isnull=True) | Q(taken_back_at__isnull=False), name="gone_once_taken_back"
            ),
        ]
        indexes = [
            models.Index(fields=["project", "id"], name="import_by_project"),
            models.Index(
                fields=["id"],
                condition=Q(taken_back_at__isnull=False, all_gone_at__isnull=True),
                name="import_being_taken_back",
            ),
        ]

    def __str__(self) -> str:
        return self.file_name or f"import {self.pk}"


ERASED = "A text of the project was erased, so the file was deleted: it may hold the text. Upload it again without it."


class ImportJobQuerySet(models.QuerySet["ImportJob"]):
    def arrived(self) -> ImportJobQuerySet:
        """Returns the jobs whose file is complete, and those whose file the worker fetches."""
        return self.exclude(file_hash="", hub="")

    def active(self) -> ImportJobQuerySet:
        """Returns the jobs that have not ended."""
        return self.filter(state__in=ImportJob.ACTIVE)

    def with_file(self, *, now: datetime) -> ImportJobQuerySet:
        """Returns the jobs that still need their file: those that have not ended, and checks that may be imported."""
        checked = Q(state__in=ImportJob.CHECKED, dry_run=True, finished_at__gt=now - ImportJob.FILE_KEPT)
        return self.filter(Q(state__in=ImportJob.ACTIVE) | checked)

    def texts_have_gone(self, project_id: int) -> None:
        """Discards the files of a project from which a text was erased that wait for somebody to start their import.

        They may hold the text too, and nobody can look it up in all formats. An import that is under way goes on.
        """
        checked = Q(state__in=ImportJob.CHECKED) | Q(state__in=ImportJob.ACTIVE)
        waiting = self.filter(Q(state=ImportJob.State.UPLOADED) | checked & Q(dry_run=True), project=project_id)
        for job in (waiting := waiting.exclude(file_hash="")):
            # The worker removes the files of its own job, once it has stopped.
            if job.state != ImportJob.State.WORKING:
                remove_on_commit(job.directory())
        waiting.update(state=ImportJob.State.CANCELLED, error=ERASED, finished_at=Now())


class ImportJob(Job):
    """A file that a manager sent or named on the Hub, and how far the light worker is with it.

    `rows_done` counts the tasks and refusals that are finished with. It is written in the transaction of each batch, as
    the counts are, so a job whose worker was killed goes on behind the last batch that was committed. The
    file is kept until the import has ended; after a dry run it stays for a while, so that it can be imported.
    """

    class State(models.TextChoices):
        UPLOADED = "uploaded", _("Uploaded")
        WAITING = "waiting", _("Waiting")
        WORKING = "working", _("Working")
        DONE = "done", _("Done")
        FAILED = "failed", _("Failed")
        CANCELLED = "cancelled", _("Cancelled")

    UNDER_WAY = (State.WAITING, State.WORKING)
    ACTIVE = (State.UPLOADED, *UNDER_WAY)
    CHECKED = (State.DONE, State.FAILED)
    FILE_KEPT = timedelta(days=1)

    project = models.ForeignKey(
        "annotator.Project", on_delete=models.CASCADE, related_name="import_jobs", db_index=False
    )
    requested_by = models.ForeignKey(
        "annotator.User", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    hub = models.CharField(
        max_length=300, blank=True, help_text="the data set, folder or file of the Hub, whose file the worker fetches"
    )
    fetch_only = models.BooleanField(default=False, help_text="the fetched file waits for a manager, as an upload does")
    file_name = models.CharField(max_length=200)
    file_hash = models.CharField(max_length=64, blank=True, help_text="SHA-256; empty while the file arrives")
    file_bytes = models.BigIntegerField(default=0)
    state = models.CharField(max_length=10, choices=State.choices, default=State.UPLOADED)
    dry_run = models.BooleanField(default=False)
    mapping = models.JSONField(null=True, blank=True)
    bytes_read = models.BigIntegerField(default=0)
    rows_done = models.PositiveIntegerField(default=0)
    rules = models.CharField(max_length=64, blank=True, help_text="hash of what decides how a row is read")
    created = models.PositiveIntegerField(default=0)
    existing = models.PositiveIntegerField(default=0)
    rejected = models.PositiveIntegerField(default=0)
    ratings_added = models.PositiveIntegerField(default=0)
    ratings_left_out = models.PositiveIntegerField(
        default=0, help_text="that do not count, although their rows went in"
    )
    layouts = ArrayField(models.CharField(max_length=20), default=list, blank=True)
    has_answers = models.BooleanField(default=False, help_text="whether rows came with labels or ratings")
    notes = models.JSONField(
        default=dict, blank=True, help_text="columns that were kept aside or shown, and what else is said of the rows"
    )
    import_row = models.ForeignKey(
        "annotator.Import", on_delete=models.SET_NULL, null=True, blank=True, related_name="jobs"
    )
    created_at = models.DateTimeField()

    objects = ImportJobQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=["uploaded", "waiting", "working"], finished_at__isnull=True)
                | Q(state__in=["done", "failed", "cancelled"], finished_at__isnull=False),
                name="import_job_finished_once_ended",
            ),
            models.CheckConstraint(
                condition=Q(dry_run=False) | Q(import_row__isnull=True), name="no_import_of_a_dry_run"
            ),
        ]
        indexes = [
            models.Index(fields=["project", "id"], name="import_job_by_project"),
            models.Index(
                fields=["id"], condition=Q(state__in=["uploaded", "waiting", "working"]), name="import_job_active"
            ),
        ]

    def __str__(self) -> str:
        return f"import job {self.pk}"

    def is_active(self) -> bool:
        return self.state in self.ACTIVE

    def was_checked(self) -> bool:
        """Returns whether it is a dry run that has ended, whose file can be imported."""
        return self.dry_run and self.state in self.CHECKED

    def percent(self) -> int:
        """Returns how much of the file is read."""
        return min(100 * self.bytes_read // max(self.file_bytes, 1), 100)

    def directory(self) -> Path:
        return settings.ARTIFACTS / "imports" / str(self.pk)


class ImportJobError(models.Model):
    """A row of a job's file that was refused. The first IMPORT_ERRORS_REPORTED of a job are kept."""

    job = models.ForeignKey(ImportJob, on_delete=models.CASCADE, related_name="errors", db_index=False)
    line = models.PositiveBigIntegerField()
    field = models.CharField(max_length=200, blank=True)
    error = models.TextField()

    class Meta:
        indexes = [models.Index(fields=["job", "id"], name="import_error_by_job")]

    def __str__(self) -> str:
        return f"line {self.line}: {self.error}"


class ImportMapping(models.Model):
    """A mapping of a file's columns to the fields of a task, which a project keeps by name."""

    project = models.ForeignKey(
        "annotator.Project", on_delete=models.CASCADE, related_name="import_mappings", db_index=False
    )
    name = models.CharField(max_length=100)
    columns = models.JSONField()
    by = models.ForeignKey("annotator.User", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="one_import_mapping_of_a_name_per_project")
        ]

    def __str__(self) -> str:
        return self.name
