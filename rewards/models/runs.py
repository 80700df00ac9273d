"""Runs, and what they make: reward models and policies."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext_lazy as _

from annotator.models import Project
from rewards.models.snapshots import Snapshot


class RunState(models.TextChoices):
    QUEUED = "queued", _("Queued")
    SNAPSHOTTING = "snapshotting", _("Snapshotting")
    TRAINING = "training", _("Training")
    EVALUATING = "evaluating", _("Evaluating")
    AWAITING_PROMOTION = "awaiting_promotion", _("Awaiting Promotion")
    PROMOTED = "promoted", _("Promoted")
    REJECTED = "rejected", _("Rejected")
    FAILED = "failed", _("Failed")
    CANCELLED = "cancelled", _("Cancelled")
    DONE = "done", _("Done")


class RunKind(models.TextChoices):
    """What a run makes: a reward model, or a policy, which ends as *done*."""

    REWARD = "reward", _("Reward model")
    POLICY = "policy", _("Policy")


ACTIVE_STATES = (
    RunState.QUEUED,
    RunState.SNAPSHOTTING,
    RunState.TRAINING,
    RunState.EVALUATING,
    RunState.AWAITING_PROMOTION,
)
WORKING_STATES = ACTIVE_STATES[1:]


class RunQuerySet(models.QuerySet["TrainingRun"]):
    def of_rewards(self) -> RunQuerySet:
        """Returns the runs that make reward models."""
        return self.filter(kind=RunKind.REWARD)

    def of_policies(self) -> RunQuerySet:
        """Returns the runs that align policies."""
        return self.filter(kind=RunKind.POLICY)

    def active(self) -> RunQuerySet:
        """Returns the runs that have not ended; a constraint allows one in each project."""
        return self.filter(state__in=ACTIVE_STATES)

    def working(self) -> RunQuerySet:
        """Returns the runs that a worker has claimed; one that waits for a decision has its model already."""
        return self.filter(state__in=WORKING_STATES, reward_model=None)

    def waiting(self) -> RunQuerySet:
        """Returns the runs whose model exists and waits for a manager's decision."""
        return self.filter(state=RunState.AWAITING_PROMOTION, reward_model__isnull=False)

    def unnoted(self) -> RunQuerySet:
        """Returns each project's newest run with a model, if its unlikely annotations have not been noted."""
        newer = TrainingRun.objects.filter(project=OuterRef("project"), pk__gt=OuterRef("pk"))
        with_model = self.filter(reward_model__isnull=False, unlikely_noted_at=None)
        return with_model.exclude(Exists(newer.filter(reward_model__isnull=False)))


class TrainingRun(models.Model):
    """One retraining from snapshot to promotion, or one alignment of a policy from snapshot to judgement.

    `attempt` is a fencing number: a worker that has lost the run has an older one, and its writes are refused.
    """

    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="training_runs", verbose_name=_("project")
    )
    snapshot = models.ForeignKey(
        Snapshot, on_delete=models.RESTRICT, null=True, blank=True, related_name="runs", verbose_name=_("snapshot")
    )
    kind = models.CharField(_("kind"), max_length=10, choices=RunKind.choices, default=RunKind.REWARD)
    state = models.CharField(_("state"), max_length=20, choices=RunState.choices, default=RunState.QUEUED)
    reason = models.JSONField(_("reason"), help_text=_("Why the run was started."))
    requested_by = models.ForeignKey(
        "annotator.User",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("requested by"),
    )
    config = models.JSONField(default=dict)
    config_hash = models.CharField(_("hash of the settings"), max_length=64, blank=True)
    code_version = models.CharField(_("code version"), max_length=40, blank=True)
    seed = models.PositiveIntegerField(_("seed"), default=0)
    attempt = models.PositiveSmallIntegerField(_("attempt"), default=0)
    worker = models.CharField(_("worker"), max_length=200, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    worked_seconds = models.FloatField(db_default=0.0, help_text="of its trainer, in all attempts")
    progress = models.JSONField(default=dict, blank=True)
    losses = models.JSONField(default=list, blank=True)
    metrics = models.JSONField(default=dict, blank=True)
    verdict = models.JSONField(default=dict, blank=True)
    error = models.TextField(blank=True)
    log = models.TextField(blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)
    unlikely_noted_at = models.DateTimeField(
        null=True, blank=True, help_text="when annotations unlikely to its model were noted"
    )

    objects = RunQuerySet.as_manager()

    class Meta:
        verbose_name = _("training run")
        verbose_name_plural = _("training runs")
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

    def made_model(self) -> RewardModel | None:
        """Returns the model that the run has made; None before it has."""
        try:
            return self.reward_model
        except RewardModel.DoesNotExist:
            return None

    def made_policy(self) -> Policy | None:
        """Returns the policy that the run has made; None before it has."""
        try:
            return self.policy
        except Policy.DoesNotExist:
            return None

    def waits_for_decision(self) -> bool:
        return TrainingRun.objects.waiting().filter(pk=self.pk).exists()


class RewardModel(models.Model):
    """A trained model: a Hugging Face directory, its lineage, and whether it is the project's champion."""

    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, db_index=False, related_name="reward_models", verbose_name=_("project")
    )
    run = models.OneToOneField(
        TrainingRun, on_delete=models.RESTRICT, related_name="reward_model", verbose_name=_("training run")
    )
    parent = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="+", help_text="the champion it met"
    )
    version = models.PositiveIntegerField(_("version"))
    path = models.CharField(_("path"), max_length=300, help_text=_("Relative to the artifacts folder."))
    attributes = models.JSONField()
    attribute_weights = models.JSONField(_("attribute weights"))
    manifest = models.JSONField()
    license = models.CharField(
        max_length=60, blank=True, help_text="an identifier of the Hugging Face Hub, such as apache-2.0"
    )
    license_text = models.TextField(blank=True)
    is_champion = models.BooleanField(_("is the champion"), default=False)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    promoted_at = models.DateTimeField(_("promoted at"), null=True, blank=True)
    scored = models.PositiveIntegerField(
        default=0, db_default=0, editable=False, help_text="responses that have its score; triggers keep the number"
    )
    score_precision = models.CharField(
        max_length=10,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="what all its stored scores are computed in; empty before the first, and where nobody noted it",
    )

    class Meta:
        verbose_name = _("reward model")
        verbose_name_plural = _("reward models")
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["project", "version"], name="model_version_once_per_project"),
            models.UniqueConstraint(fields=["project"], condition=Q(is_champion=True), name="one_champion_per_project"),
        ]

    def __str__(self) -> str:
        return f"{self.project.slug} v{self.version}"

    def directory(self) -> Path:
        return settings.ARTIFACTS / self.path

    def reward_directory(self) -> Path:
        """Returns where the model is stored once more, as one reward; not every model is."""
        return self.directory().with_name("reward")

    def is_erased(self) -> bool:
        """Returns whether the model's files are erased, or about to be, with the snapshot that it learnt from."""
        is_erased = Q(erasing_at__isnull=False) | Q(erased_at__isnull=False)
        return Snapshot.objects.filter(is_erased, runs=self.run_id).exists()


class Policy(models.Model):
    """An aligned language model: a Hugging Face directory, its lineage, and how it was judged before it is offered.

    `judge` is the champion that scored its answers; without one it stays a candidate, and `reason` says why.
    `artifact_hash` is the SHA-256 of its `alignment.json`, which holds that of every other file.
    """

    class State(models.TextChoices):
        CANDIDATE = "candidate", _("Not judged")
        OFFERED = "offered", _("Offered")
        REFUSED = "refused", _("Refused")

    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, db_index=False, related_name="policies", verbose_name=_("project")
    )
    run = models.OneToOneField(
        TrainingRun, on_delete=models.RESTRICT, related_name="policy", verbose_name=_("training run")
    )
    version = models.PositiveIntegerField(_("version"))
    base = models.CharField(_("base policy"), max_length=64, help_text=_("A name from the operator's list."))
    method = models.CharField(_("method"), max_length=20)
    path = models.CharField(_("path"), max_length=300, help_text=_("Relative to the artifacts folder."))
    artifact_hash = models.CharField(_("hash of the artifact"), max_length=64)
    manifest = models.JSONField()
    state = models.CharField(_("state"), max_length=10, choices=State.choices, default=State.CANDIDATE)
    reason = models.JSONField(_("reason"), help_text=_("Why it is in this state."))
    judge = models.ForeignKey(
        RewardModel,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="judged_policies",
        verbose_name=_("judged by"),
    )
    judgement = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    offered_at = models.DateTimeField(_("offered at"), null=True, blank=True)

    class Meta:
        verbose_name = _("policy")
        verbose_name_plural = _("policies")
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["project", "version"], name="policy_version_once_per_project"),
            models.CheckConstraint(
                condition=~Q(state="offered") | Q(offered_at__isnull=False), name="offered_policy_says_since_when"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.project.slug} policy {self.version}"

    def directory(self) -> Path:
        return settings.ARTIFACTS / self.path

    def is_erased(self) -> bool:
        """Returns whether the policy's files are erased, or about to be, with the snapshot that it learnt from."""
        is_erased = Q(erasing_at__isnull=False) | Q(erased_at__isnull=False)
        return Snapshot.objects.filter(is_erased, runs=self.run_id).exists()
