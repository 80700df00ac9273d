"""The outcome of a task's annotations, and the labels of its responses, imported ones included."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.lookups import IsNull

from annotator.models.scores import cells_within_scale, ranges, whole_cells, whole_scores, within_scale


def _own_project() -> models.ForeignKey[Any]:
    """The project of the task, on a row that goes with the task: whether a project has any such row is asked often."""
    return models.ForeignKey(
        "annotator.Project", models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+", editable=False
    )


class Consensus(models.Model):
    """The outcome of one task's annotations. `drop_reason` is empty for a task that yields labels."""

    task = models.OneToOneField("annotator.Task", on_delete=models.CASCADE, related_name="consensus")
    project = _own_project()
    kept = ArrayField(models.BigIntegerField(), default=list, help_text="ids of the annotations that make the label")
    annotators = models.PositiveSmallIntegerField()
    spread = models.FloatField(null=True, help_text="of the deciding attribute over the kept annotations")
    spread_of_all = models.FloatField(null=True, help_text="of the deciding attribute over all annotations")
    preference = models.SmallIntegerField(null=True)
    pairs = models.JSONField(
        default=list, db_default=[], help_text="[[better, worse], ...]: responses that rankings tell apart"
    )
    drop_reason = models.CharField(max_length=60, blank=True)
    computed_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "consensus"
        indexes = [
            models.Index(fields=["task"], condition=~Q(drop_reason=""), name="consensus_dropped"),
            models.Index(fields=["project"], name="consensus_by_project"),
        ]


_KEPT = Q(response__task__consensus__isnull=True) | Q(response__task__consensus__drop_reason="")


def _none(rows: models.QuerySet[Label, Any]) -> Q:
    return Q(IsNull(models.Subquery(rows[:1]), True))


class LabelQuerySet(models.QuerySet["Label"]):
    def in_force(self) -> LabelQuerySet:
        """Returns one label for each response: the reviewer's if there is one, else the annotators', else the imported.

        A dropped task yields only its reviewer's labels; retired, quarantined and gold tasks yield none.
        `in_force.LABEL_IN_FORCE` says the same in SQL.
        """
        return self.in_force_while_in_use().filter(response__task__state__in=["open", "complete"])

    def in_force_while_in_use(self) -> LabelQuerySet:
        """Returns the labels that are in force as long as their tasks are open or complete, whatever these are now."""
        # Not by EXISTS, for which PostgreSQL may read the labels of all responses where those of a few are wanted.
        of_response = Label.objects.filter(response=models.OuterRef("response")).values("pk")
        reviewed = Q(source=Label.Source.ADJUDICATED)
        agreed = Q(source=Label.Source.CONSENSUS) & _none(of_response.filter(reviewed))
        imported = Q(source=Label.Source.IMPORTED) & _none(of_response.exclude(source=Label.Source.IMPORTED))
        return self.filter(reviewed | (_KEPT & (agreed | imported)))

    def are_in_force(self) -> bool:
        """Returns whether any of these labels is in force, or another one of the same response.

        It reads less than `in_force().exists()`, since it need not choose among the labels of a response.
        """
        chosen = Q(source=Label.Source.ADJUDICATED) | _KEPT
        rows = self.filter(chosen, response__task__state__in=["open", "complete"])
        # In an order, or PostgreSQL may read the table from its start to a project's first label.
        return rows.order_by("pk").values("pk").first() is not None

    def for_project(self, project_id: int) -> LabelQuerySet:
        return self.filter(project=project_id)


class Label(models.Model):
    """The agreed scores of one response: `means` before rounding, `scores` after.

    `segment_means` and `segment_scores` are [segments][aspects] in the order of `aspects`, with null where an aspect
    does not apply. They follow the response's segments, or `cut` where annotators cut it in other ways: then it is the
    finest common cut of theirs.
    """

    class Source(models.TextChoices):
        ADJUDICATED = "adjudicated"
        CONSENSUS = "consensus"
        IMPORTED = "imported"

    response = models.ForeignKey("annotator.Response", on_delete=models.CASCADE, db_index=False, related_name="labels")
    project = _own_project()
    source = models.CharField(max_length=12, choices=Source.choices)
    scores = models.JSONField()
    means = models.JSONField()
    aspects = ArrayField(models.SlugField(), default=list, db_default=[], blank=True)
    segment_scores = models.JSONField(null=True, blank=True)
    segment_means = models.JSONField(null=True, blank=True)
    cut = models.JSONField(null=True, blank=True)
    rubric_version = models.PositiveSmallIntegerField(
        default=1, db_default=1, help_text="the newest version of the rubric among what made the label"
    )
    made_at = models.DateTimeField()

    objects = LabelQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["response", "source"], name="one_label_per_response_and_source"),
            models.CheckConstraint(condition=whole_scores("scores"), name="label_scores_are_whole_and_on_a_scale"),
            models.CheckConstraint(condition=within_scale("means"), name="label_means_are_on_a_scale"),
            models.CheckConstraint(condition=whole_cells("segment_scores"), name="label_segment_scores_on_a_scale"),
            models.CheckConstraint(condition=cells_within_scale("segment_means"), name="label_segment_means_on_scale"),
            models.CheckConstraint(condition=ranges("cut"), name="a_label_is_of_ranges"),
        ]
        indexes = [
            models.Index(fields=["made_at"], name="label_by_time"),
            models.Index(fields=["project", "id"], name="label_by_project"),
        ]
