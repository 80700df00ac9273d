"""Releases: numbered, frozen states of a project's data, as folders of files that others can load."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from annotator.models.jobs import Job, remove_on_commit


class ReleaseQuerySet(models.QuerySet["Release"]):
    def under_way(self) -> ReleaseQuerySet:
        """Returns the releases that the worker writes or will write."""
        return self.filter(state__in=Release.UNDER_WAY)

    def with_files(self) -> ReleaseQuerySet:
        """Returns the releases that have files, or will have some."""
        return self.filter(state__in=(*Release.UNDER_WAY, Release.State.DONE))

    def texts_have_gone(self, project_id: int, tasks: Collection[int]) -> None:
        """Withdraws the releases that hold one of the tasks, in which a text was erased or which were deleted.

        A release that is being written is written again: nobody knows yet which tasks will be in it.
        """
        of_project = self.filter(project=project_id)
        # Those that wait as well: until this transaction is over, nobody begins to read the old texts.
        of_project.under_way().update(
            state=Release.State.WAITING, attempt=F("attempt") + 1, tries=0, rows_done=0, bytes_done=0
        )
        held = ReleaseTask.objects.filter(release=OuterRef("pk"), task_id__in=list(tasks))
        done = of_project.filter(Exists(held), state=Release.State.DONE)
        for release in done:
            remove_on_commit(release.folder())
        done.update(state=Release.State.WITHDRAWN, finished_at=Now(), archive_sha256="")


class Release(Job):
    """A state of a project's data under a number: what the card says beside the figures, and the files that came of it.

    One whose worker was killed is written again from the beginning. `content_hash` covers the rows, however they are
    encoded.
    """

    class State(models.TextChoices):
        WAITING = "waiting", _("Waiting")
        WORKING = "working", _("Working")
        DONE = "done", _("Done")
        FAILED = "failed", _("Failed")
        WITHDRAWN = "withdrawn", _("Withdrawn")

    UNDER_WAY = (State.WAITING, State.WORKING)

    project = models.ForeignKey("annotator.Project", on_delete=models.CASCADE, related_name="releases", db_index=False)
    number = models.PositiveIntegerField(help_text="counts from 1 in each project; a number is never used again")
    requested_by = models.ForeignKey(
        "annotator.User", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    title = models.CharField(max_length=120, blank=True)
    license = models.CharField(max_length=60, help_text="an identifier of the Hugging Face Hub, such as cc-by-4.0")
    license_text = models.TextField(blank=True)
    intended_use = models.TextField(blank=True)
    limits = models.TextField(blank=True)
    notes = models.TextField(blank=True)
    rubric_version = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="the rubric's version that its labels were made under; empty: all"
    )
    leave_out_failing = models.BooleanField(
        default=False, help_text="tasks that fail a check are left out, and do not refuse the release"
    )
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    rows_expected = models.PositiveBigIntegerField(null=True, blank=True, help_text="known once the texts are checked")
    rows_done = models.PositiveBigIntegerField(default=0)
    bytes_done = models.BigIntegerField(default=0)
    content_hash = models.CharField(max_length=64, blank=True)
    counts = models.JSONField(default=dict, blank=True)
    files = models.JSONField(default=list, blank=True, help_text="[{path, size, sha256}, ...]")
    archive_size = models.BigIntegerField(default=0)
    archive_sha256 = models.CharField(max_length=64, blank=True, help_text="empty while there are no files")
    created_at = models.DateTimeField()
    request_id = models.UUIDField(null=True, blank=True, help_text="made up by whoever asked, who may ask again")

    objects = ReleaseQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "number"], name="release_number_once_per_project"),
            models.UniqueConstraint(fields=["project", "request_id"], name="a_release_is_made_once_for_a_request"),
            models.CheckConstraint(
                condition=Q(state__in=["waiting", "working"], finished_at__isnull=True)
                | Q(state__in=["done", "failed", "withdrawn"], finished_at__isnull=False),
                name="release_finished_once_ended",
            ),
            models.CheckConstraint(
                condition=Q(state="done") ^ Q(archive_sha256=""), name="release_has_a_hash_while_it_has_files"
            ),
        ]
        indexes = [
            models.Index(fields=["id"], condition=Q(state__in=["waiting", "working"]), name="release_under_way"),
        ]

    def __str__(self) -> str:
        return f"release {self.number}"

    def percent(self) -> int | None:
        """Returns how much is written; None while the texts are being checked."""
        return min(100 * self.rows_done // self.rows_expected, 99) if self.rows_expected else None

    def folder(self) -> Path:
        return settings.ARTIFACTS / "releases" / str(self.pk)

    def unfinished_folder(self) -> Path:
        """Returns where the files are written, beside their place: within a file system, a renaming is one step."""
        return settings.ARTIFACTS / "releases" / f".building-{self.pk}"

    def file_called(self, path: str) -> dict[str, Any] | None:
        """Returns the size and hash of the file with this path in the release, if there is such a file."""
        return next((file for file in self.files if file["path"] == path), None)


class ReleaseTask(models.Model):
    """A task that is in a release. There is no foreign key, so that the row outlives the task."""

    pk = models.CompositePrimaryKey("task_id", "release_id")
    task_id = models.BigIntegerField()
    release = models.ForeignKey(Release, on_delete=models.CASCADE, related_name="frozen")

    def __str__(self) -> str:
        return f"task {self.task_id} in {self.release_id}"
