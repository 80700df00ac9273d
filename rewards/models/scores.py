"""Evaluations of models, and their scores of responses."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from annotator.models import Response
from annotator.models.jobs import Job
from rewards.models.runs import RewardModel


class Evaluation(models.Model):
    """Metrics of one model on one set of held-out data."""

    reward_model = models.ForeignKey(RewardModel, on_delete=models.CASCADE, db_index=False, related_name="evaluations")
    name = models.CharField(max_length=100)
    data_hash = models.CharField(max_length=64)
    metrics = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["reward_model", "name", "data_hash"], name="evaluation_once_per_model_and_data"
            )
        ]


class EvaluationJobQuerySet(models.QuerySet["EvaluationJob"]):
    def active(self) -> EvaluationJobQuerySet:
        """Returns the jobs that have not ended."""
        return self.filter(state__in=EvaluationJob.UNDER_WAY)


class EvaluationJob(Job):
    """A file that somebody sent to judge a model by: a train worker measures the model and stores an evaluation.

    The file is kept until the job has ended.
    """

    class State(models.TextChoices):
        QUEUED = "queued", _("Queued")
        WORKING = "working", _("Evaluating")
        DONE = "done", _("Done")
        FAILED = "failed", _("Failed")

    UNDER_WAY = (State.QUEUED, State.WORKING)

    reward_model = models.ForeignKey(RewardModel, on_delete=models.CASCADE, related_name="evaluation_jobs")
    requested_by = models.ForeignKey("annotator.User", on_delete=models.SET_NULL, null=True, related_name="+")
    name = models.CharField(max_length=100)
    file_name = models.CharField(max_length=100)
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    progress = models.JSONField(default=dict, blank=True, help_text="the newest event of the process that measures")
    evaluation = models.ForeignKey(Evaluation, on_delete=models.SET_NULL, null=True, related_name="jobs")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = EvaluationJobQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"evaluation job {self.pk}"

    def directory(self) -> Path:
        return settings.ARTIFACTS / "evaluations" / str(self.pk)


class Score(models.Model):
    """The scores of one response by one model: a value per attribute (not clamped) and the weighted reward.

    `token_key` stands for the tokens that the model read: equal ones need not be scored again. `uncertainty` is the
    reward's standard deviation over the model's ensemble of heads, where it has one. `created_at` is when the response
    was read.
    """

    reward_model = models.ForeignKey(
        RewardModel, on_delete=models.CASCADE, related_name="scores", verbose_name=_("reward model")
    )
    response = models.ForeignKey(
        Response, on_delete=models.CASCADE, related_name="model_scores", verbose_name=_("response")
    )
    scores = models.JSONField(_("scores"))
    segment_scores = models.JSONField(
        null=True, help_text="[segments][aspects] in the order of the model's aspects; empty: not scored by segments"
    )
    reward = models.FloatField(_("reward"))
    uncertainty = models.FloatField(_("uncertainty"), null=True)
    token_key = models.UUIDField(_("token key"), null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("score")
        verbose_name_plural = _("scores")
        constraints = [
            models.UniqueConstraint(fields=["reward_model", "response"], name="one_score_per_model_and_response")
        ]
        indexes = [
            models.Index(fields=["reward_model", "token_key"], name="score_by_tokens"),
            models.Index(fields=["reward_model", "reward"], name="score_by_reward"),
        ]


class ScoringPass(models.Model):
    """The progress of a model through its project's tasks, in the order of their ids.

    Tasks up to `handed_out` are scored, or a lane has them.
    """

    reward_model = models.OneToOneField(RewardModel, on_delete=models.CASCADE, related_name="scoring_pass")
    handed_out = models.BigIntegerField(default=0)
    began_at = models.DateTimeField()
    error = models.TextField(blank=True)


class ScoringLane(models.Model):
    """A lane scores one chunk after the other. A message names a lane and its turn, and a turn is taken once.

    `first_task` and `last_task` bound the current chunk; `moved_at` is empty while the lane rests.
    """

    scoring_pass = models.ForeignKey(ScoringPass, on_delete=models.CASCADE, db_index=False, related_name="lanes")
    number = models.PositiveSmallIntegerField()
    turn = models.PositiveIntegerField(default=0)
    first_task = models.BigIntegerField(null=True)
    last_task = models.BigIntegerField(null=True)
    moved_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["scoring_pass", "number"], name="lane_number_once_per_pass")]


class ScoringJob(models.Model):
    """Items that were sent to `score/`: answered at once by a warm worker, or fetched later by this row's id."""

    class State(models.TextChoices):
        QUEUED = "queued"
        DONE = "done"
        FAILED = "failed"

    reward_model = models.ForeignKey(RewardModel, on_delete=models.CASCADE, related_name="jobs")
    requested_by = models.ForeignKey("annotator.User", on_delete=models.CASCADE, related_name="+")
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    items = models.JSONField()
    results = models.JSONField(null=True)
    error = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
