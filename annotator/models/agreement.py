"""What is counted of how far raters agree: from annotations alone, and rebuilt from them at any time."""

from __future__ import annotations

from django.db import models


class StaleAgreement(models.Model):
    """A task whose ratings have changed since they were counted. Rows are only added, and taken away once counted.

    One row a change, not one a task: a change that is not committed yet must not pass for one that was counted.
    """

    # No constraints: a task that is deleted has to be taken out of the counts, and nobody waits for a lock here.
    project = models.ForeignKey(
        "annotator.Project", on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    task = models.ForeignKey(
        "annotator.Task", on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )

    class Meta:
        indexes = [models.Index(fields=["project", "id"], name="stale_by_project")]


class CountedTask(models.Model):
    """The ratings of a task as they were counted, so that they can be taken back: agreement.counting says how."""

    task = models.OneToOneField(
        "annotator.Task", on_delete=models.DO_NOTHING, db_constraint=False, primary_key=True, related_name="+"
    )
    project = models.ForeignKey("annotator.Project", on_delete=models.CASCADE, related_name="+")
    ratings = models.BinaryField()


class AgreementTotal(models.Model):
    """How often which two ratings met: of a project, of a bucket of its tasks, a week, a rater, a pair of raters.

    `one` and `other` say of whom: the bucket, the week, the rater, the two raters. `shared` is the number of responses
    that the rater or the pair has in common with others or each other. `cells` is packed as agreement.totals says.
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
    """When a project's totals were last brought up to date, and over which attributes they go."""

    project = models.OneToOneField(
        "annotator.Project", on_delete=models.CASCADE, primary_key=True, related_name="agreement_state"
    )
    attributes = models.JSONField(default=list)
    refreshed_at = models.DateTimeField(null=True)
