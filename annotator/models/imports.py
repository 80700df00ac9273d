"""Records of imported files, so that the tasks that came from one of them can be taken back."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q


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
