"""Stored counts and measures of work: agreement, raters' quality, a project's figures. All can be computed anew."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import models


class StaleAgreement(models.Model):
    """A change to a task's ratings that has not been counted. Rows are only added, and deleted once they are counted.

    There is a row for each change, not one for each task: a change that is not committed yet would otherwise pass for
    one that was counted.
    """

    # No foreign-key constraints: a row has to outlive its task, whose ratings are still to be taken out of the counts,
    # and adding one must not wait for a lock on the task or the project.
    project = models.ForeignKey(
        "annotator.Project", on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    task = models.ForeignKey(
        "annotator.Task", on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )

    class Meta:
        indexes = [models.Index(fields=["project", "id"], name="stale_by_project")]


class CountedTask(models.Model):
    """The ratings of a task as they were counted, so that they can be subtracted again (analysis/agreement/totals.py).

    The row outlives its task: a trigger on deleted tasks reads it.
    """

    task = models.OneToOneField(
        "annotator.Task", on_delete=models.DO_NOTHING, db_constraint=False, primary_key=True, related_name="+"
    )
    project = models.ForeignKey("annotator.Project", on_delete=models.CASCADE, related_name="+")
    ratings = models.BinaryField()


class AgreementTotal(models.Model):
    """Counts of how often each two ratings met, for a project, a bucket of its tasks, a week, a rater or two raters.

    `one` and `other` identify the bucket, the week, the rater or the two raters. `shared` is the number of responses
    that the rater has in common with others, or the two raters with each other. analysis/agreement/totals.py packs
    and unpacks `cells`.
    """

    class Kind(models.TextChoices):
        PROJECT = "project"
        BUCKET = "bucket"
        WEEK = "week"
        RATER = "rater"
        PAIR = "pair"

    project = models.ForeignKey(
        "annotator.Project", on_delete=models.CASCADE, db_index=False, related_name="agreement_totals"
    )
    kind = models.CharField(max_length=8, choices=Kind.choices)
    one = models.BigIntegerField(default=0)
    other = models.BigIntegerField(default=0)
    shared = models.IntegerField(default=0)
    cells = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "kind", "one", "other"], name="one_total_of_each_kind")
        ]
        indexes = [models.Index(fields=["project", "kind", "-shared"], name="total_by_shared")]


class AgreementState(models.Model):
    """The time at which a project's totals were last brought up to date, and the attributes that they cover."""

    project = models.OneToOneField(
        "annotator.Project", on_delete=models.CASCADE, primary_key=True, related_name="agreement_state"
    )
    attributes = models.JSONField(default=list)
    refreshed_at = models.DateTimeField(null=True)


class RaterQuality(models.Model):
    """The results of the rater model and the checks for one annotator of a project, for people to judge."""

    project = models.ForeignKey(
        "annotator.Project", on_delete=models.CASCADE, db_index=False, related_name="rater_qualities"
    )
    annotator = models.ForeignKey("annotator.User", on_delete=models.CASCADE, related_name="+")
    annotations = models.PositiveIntegerField()
    measures = models.JSONField(default=dict)
    flags = models.JSONField(default=list)
    computed_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "rater quality"
        constraints = [
            models.UniqueConstraint(fields=["project", "annotator"], name="one_quality_per_annotator_and_project")
        ]

    def __str__(self) -> str:
        return f"{self.annotator} in {self.project}"


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
