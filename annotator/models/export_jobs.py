"""Exports that the light worker writes to a file, which can then be downloaded in parts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from annotator.models.jobs import Job, remove_on_commit


class ExportJobQuerySet(models.QuerySet["ExportJob"]):
    def under_way(self) -> ExportJobQuerySet:
        """Returns the jobs that the worker has or will take."""
        return self.filter(state__in=ExportJob.UNDER_WAY)

    def with_file(self) -> ExportJobQuerySet:
        """Returns the jobs that have a file, or will have one."""
        return self.filter(state__in=(*ExportJob.UNDER_WAY, ExportJob.State.DONE))

    def texts_have_gone(self, project_id: int) -> None:
        """Withdraws the files of a project from which a text was erased or a task deleted.

        A file that is being written is written again; one that is complete is deleted.
        """
        of_project = self.filter(project=project_id)
        # Those that wait as well: until this transaction is over, nobody begins to read the old texts.
        of_project.under_way().update(
            state=ExportJob.State.WAITING, attempt=F("attempt") + 1, tries=0, rows_done=0, bytes_done=0
        )
        done = of_project.filter(state=ExportJob.State.DONE)
        for job in done:
            remove_on_commit(job.directory())
        done.update(state=ExportJob.State.WITHDRAWN, finished_at=Now(), sha256="")


class ExportJob(Job):
    """An export that somebody asked for, how far the light worker is with it, and the file that came of it.

    A job whose worker was killed is written again from the beginning, as the rows may have changed meanwhile. The file
    is its requester's alone: it leaves out the tasks that this person was rating.
    """

    class State(models.TextChoices):
        WAITING = "waiting", _("Waiting")
        WORKING = "working", _("Working")
        DONE = "done", _("Done")
        FAILED = "failed", _("Failed")
        EXPIRED = "expired", _("Expired")
        WITHDRAWN = "withdrawn", _("Withdrawn")

    UNDER_WAY = (State.WAITING, State.WORKING)
    FILE_KEPT = timedelta(days=7)
    KEPT = timedelta(days=30)

    project = models.ForeignKey(
        "annotator.Project", on_delete=models.CASCADE, related_name="export_jobs", db_index=False
    )
    requested_by = models.ForeignKey("annotator.User", on_delete=models.CASCADE, related_name="+")
    layout = models.CharField(max_length=30)
    format = models.CharField(max_length=10)
    gzip = models.BooleanField(default=False)
    filters = models.JSONField(default=dict, help_text="the query parameters that choose rows")
    fields = ArrayField(models.CharField(max_length=200), default=list, blank=True)
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    rows_expected = models.PositiveBigIntegerField(null=True, blank=True, help_text="an estimate")
    rows_done = models.PositiveBigIntegerField(default=0)
    bytes_done = models.BigIntegerField(default=0)
    sha256 = models.CharField(max_length=64, blank=True, help_text="of the file; empty while there is none")
    created_at = models.DateTimeField()
    request_id = models.UUIDField(null=True, blank=True, help_text="made up by whoever asked, who may ask again")

    objects = ExportJobQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "requested_by", "request_id"], name="an_export_is_made_once_for_a_request"
            ),
            models.CheckConstraint(
                condition=Q(state__in=["waiting", "working"], finished_at__isnull=True)
                | Q(state__in=["done", "failed", "expired", "withdrawn"], finished_at__isnull=False),
                name="export_job_finished_once_ended",
            ),
            models.CheckConstraint(
                condition=Q(state="done") ^ Q(sha256=""), name="export_job_has_a_hash_while_it_has_a_file"
            ),
        ]
        indexes = [
            models.Index(fields=["project", "requested_by", "id"], name="export_job_of_a_person"),
            models.Index(fields=["id"], condition=Q(state__in=["waiting", "working"]), name="export_job_under_way"),
        ]

    def __str__(self) -> str:
        return f"export job {self.pk}"

    def percent(self) -> int | None:
        """Returns how much is written, by the rows that are expected; None where nobody knows how many there are."""
        return min(100 * self.rows_done // self.rows_expected, 99) if self.rows_expected else None

    def ending(self) -> str:
        """Returns what the file's name ends with, such as csv.gz."""
        return f"{self.format}.gz" if self.gzip else self.format

    def directory(self) -> Path:
        return settings.ARTIFACTS / "exports" / str(self.pk)

    def file(self) -> Path:
        return self.directory() / "file"
