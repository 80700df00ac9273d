"""Stored counts of how far raters agree. They come from annotations alone and can be rebuilt from them at any time."""

from __future__ import annotations

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
    """The ratings of a task as they were counted, so that they can be subtracted again (annotator/agreement/totals.py).

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
    that the rater has in common with others, or the two raters with each other. annotator/agreement/totals.py packs
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
