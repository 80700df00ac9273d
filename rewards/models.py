"""Tables of the machine half: snapshots, runs, models, evaluations and scores."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.db import models
from django.db.models import Q

from annotator.models import Project, Response


class Snapshot(models.Model):
    """The labels of a project at one moment, as files; the same labels give the same content hash."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="snapshots")
    content_hash = models.CharField(max_length=64)
    path = models.CharField(max_length=300, help_text="relative to the artifacts' folder")
    manifest = models.JSONField()
    train_tasks = models.PositiveIntegerField()
    validation_tasks = models.PositiveIntegerField()
    labels = models.PositiveIntegerField(help_text="labelled responses")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["project", "content_hash"], name="snapshot_content_once_per_project")
        ]

    def __str__(self) -> str:
        return f"{self.content_hash[:12]} ({self.labels} labels)"

    def directory(self) -> Path:
        return settings.ARTIFACTS / self.path


class RunState(models.TextChoices):
    QUEUED = "queued"
    SNAPSHOTTING = "snapshotting"
    TRAINING = "training"
    EVALUATING = "evaluating"
    AWAITING_PROMOTION = "awaiting_promotion"
    PROMOTED = "promoted"
    REJECTED = "rejected"
    FAILED = "failed"
    CANCELLED = "cancelled"


ACTIVE_STATES = (
    RunState.QUEUED,
    RunState.SNAPSHOTTING,
    RunState.TRAINING,
    RunState.EVALUATING,
    RunState.AWAITING_PROMOTION,
)
WORKING_STATES = ACTIVE_STATES[1:]


class RunQuerySet(models.QuerySet["TrainingRun"]):
    def active(self) -> RunQuerySet:
        return self.filter(state__in=ACTIVE_STATES)

    def working(self) -> RunQuerySet:
        return self.filter(state__in=WORKING_STATES)


class TrainingRun(models.Model):
    """One retraining from snapshot to promotion. `attempt` fences: a worker that lost its lease writes nothing."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="training_runs")
    snapshot = models.ForeignKey(Snapshot, on_delete=models.RESTRICT, null=True, blank=True, related_name="runs")
    state = models.CharField(max_length=20, choices=RunState.choices, default=RunState.QUEUED)
    reason = models.CharField(max_length=200, help_text="why it was started")
    requested_by = models.ForeignKey(
        "annotator.User", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    config = models.JSONField(default=dict)
    config_hash = models.CharField(max_length=64, blank=True)
    code_version = models.CharField(max_length=40, blank=True)
    seed = models.PositiveIntegerField(default=0)
    attempt = models.PositiveSmallIntegerField(default=0)
    worker = models.CharField(max_length=200, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    progress = models.JSONField(default=dict, blank=True)
    losses = models.JSONField(default=list, blank=True)
    metrics = models.JSONField(default=dict, blank=True)
    verdict = models.JSONField(default=dict, blank=True)
    error = models.TextField(blank=True)
    log = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["project"], condition=Q(state__in=ACTIVE_STATES), name="one_active_run_per_project"
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.pk} of {self.project}: {self.get_state_display()}"

    def directory(self) -> Path:
        return settings.ARTIFACTS / "runs" / str(self.pk)


class RewardModel(models.Model):
    """A trained model: a Hugging Face directory, its lineage, and whether it is the project's champion."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="reward_models")
    run = models.OneToOneField(TrainingRun, on_delete=models.RESTRICT, related_name="reward_model")
    version = models.PositiveIntegerField()
    path = models.CharField(max_length=300, help_text="relative to the artifacts' folder")
    attributes = models.JSONField()
    attribute_weights = models.JSONField()
    manifest = models.JSONField()
    is_champion = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    promoted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["project", "version"], name="model_version_once_per_project"),
            models.UniqueConstraint(fields=["project"], condition=Q(is_champion=True), name="one_champion_per_project"),
        ]

    def __str__(self) -> str:
        return f"{self.project.slug} v{self.version}"

    def directory(self) -> Path:
        return settings.ARTIFACTS / self.path


class Evaluation(models.Model):
    """Metrics of one model on one set of held-out data."""

    reward_model = models.ForeignKey(RewardModel, on_delete=models.CASCADE, related_name="evaluations")
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


class Score(models.Model):
    """What one model gives one response: a value per attribute (not clamped) and the weighted reward."""

    reward_model = models.ForeignKey(RewardModel, on_delete=models.CASCADE, related_name="scores")
    response = models.ForeignKey(Response, on_delete=models.CASCADE, related_name="model_scores")
    scores = models.JSONField()
    reward = models.FloatField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["reward_model", "response"], name="one_score_per_model_and_response")
        ]


class ScoringJob(models.Model):
    """Items sent to `score/`: answered at once by a warm worker, or fetched later from here."""

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
