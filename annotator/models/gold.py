"""Gold tasks with the experts' ratings, and the tests that annotators take on them."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from annotator.models.scores import whole_cells, whole_scores


class Gold(models.Model):
    """Makes a task a gold task, used in the practice or the test of the qualification, or in the stream of work."""

    class Use(models.TextChoices):
        PRACTICE = "practice", _("Practice")
        TEST = "test", _("Test")
        STREAM = "stream", _("Stream")

    task = models.OneToOneField("annotator.Task", on_delete=models.CASCADE, related_name="gold", verbose_name=_("task"))
    use = models.CharField(_("use"), max_length=10, choices=Use.choices)

    class Meta:
        verbose_name_plural = _("gold tasks")
        verbose_name = _("gold task")

    def __str__(self) -> str:
        return f"{self.task} for {self.use}"


class ExpertRating(models.Model):
    """The experts' scores of one response of a gold task, and their explanation.

    `segment_scores` are [segments][aspects] in the order of `aspects`, null where one does not apply.
    """

    gold = models.ForeignKey(Gold, on_delete=models.CASCADE, related_name="ratings")
    response = models.OneToOneField(
        "annotator.Response", on_delete=models.CASCADE, related_name="expert_rating", verbose_name=_("response")
    )
    scores = models.JSONField()
    aspects = ArrayField(models.SlugField(), default=list, db_default=[], blank=True)
    segment_scores = models.JSONField(null=True, blank=True)
    explanation = models.TextField(_("explanation"), blank=True)

    class Meta:
        verbose_name = _("expert rating")
        verbose_name_plural = _("expert ratings")
        constraints = [
            models.CheckConstraint(condition=whole_scores("scores"), name="expert_scores_are_whole_and_on_a_scale"),
            models.CheckConstraint(condition=whole_cells("segment_scores"), name="expert_segment_scores_on_a_scale"),
        ]

    def __str__(self) -> str:
        return f"experts on {self.response}"


class QualificationRun(models.Model):
    """One member's run through the practice or the test. `kappa`, against the experts, is the mean over attributes."""

    class Kind(models.TextChoices):
        PRACTICE = "practice", _("Practice")
        TEST = "test", _("Test")

    member = models.ForeignKey(
        "annotator.Membership", on_delete=models.CASCADE, db_index=False, related_name="qualification_runs"
    )
    kind = models.CharField(_("kind"), max_length=10, choices=Kind.choices)
    number = models.PositiveSmallIntegerField(_("number"))
    started_at = models.DateTimeField(_("started at"))
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)
    kappa = models.FloatField(_("kappa"), null=True, blank=True)
    passed = models.BooleanField(_("passed"), null=True, blank=True)
    draft = models.JSONField(default=dict, blank=True)

    class Meta:
        verbose_name = _("qualification run")
        verbose_name_plural = _("qualification runs")
        ordering = ["kind", "number"]
        constraints = [
            models.UniqueConstraint(fields=["member", "kind", "number"], name="qualification_run_number_once"),
            models.UniqueConstraint(
                fields=["member", "kind"], condition=Q(finished_at__isnull=True), name="one_open_qualification_run"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.member}, {self.kind} {self.number}"


class QualificationAnswer(models.Model):
    """The scores that one run gives one response, and its segments: [segments][aspects] in the order of `aspects`."""

    run = models.ForeignKey(QualificationRun, on_delete=models.CASCADE, db_index=False, related_name="answers")
    response = models.ForeignKey("annotator.Response", on_delete=models.CASCADE, related_name="+")
    scores = models.JSONField()
    aspects = ArrayField(models.SlugField(), default=list, db_default=[], blank=True)
    segment_scores = models.JSONField(null=True, blank=True)
    answered_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "response"], name="one_answer_per_run_and_response"),
            models.CheckConstraint(condition=whole_scores("scores"), name="answer_scores_are_whole_and_on_a_scale"),
            models.CheckConstraint(condition=whole_cells("segment_scores"), name="answer_segment_scores_on_a_scale"),
        ]
