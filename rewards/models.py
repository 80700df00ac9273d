"""Tables of the machine half: snapshots, runs, models, evaluations and scores."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext_lazy as _

from annotator.models import Project, Response
from annotator.models.jobs import Job


class Snapshot(models.Model):
    """The labels of a project at one moment, as files; the same labels give the same content hash.

    Triggers count the tasks that were redacted or deleted since: the files hold their text until they are erased.
    """

    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, db_index=False, related_name="snapshots", verbose_name=_("project")
    )
    content_hash = models.CharField(_("content hash"), max_length=64)
    path = models.CharField(_("path"), max_length=300, help_text=_("Relative to the artifacts folder."))
    manifest = models.JSONField(_("manifest"))
    train_tasks = models.PositiveIntegerField(_("training tasks"))
    validation_tasks = models.PositiveIntegerField(_("validation tasks"))
    labels = models.PositiveIntegerField(_("labels"), help_text=_("Labelled responses."))
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    redacted_tasks = models.PositiveIntegerField(db_default=0, help_text="redacted after it was taken")
    deleted_tasks = models.PositiveIntegerField(db_default=0, help_text="deleted after it was taken")
    marked_at = models.DateTimeField(null=True, blank=True, help_text="of the last of these")
    erasing_at = models.DateTimeField(null=True, blank=True, help_text="asked for; from then on nobody uses its files")
    erased_at = models.DateTimeField(null=True, blank=True, help_text="its files and those of its models are gone")

    class Meta:
        verbose_name = _("snapshot")
        verbose_name_plural = _("snapshots")
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["project", "content_hash"], name="snapshot_content_once_per_project")
        ]

    def __str__(self) -> str:
        size = f"{self.labels} labels, {self.preferences} preferences" if self.preferences else f"{self.labels} labels"
        return f"{self.content_hash[:12]} ({size})"

    @property
    def preferences(self) -> int:
        """The tasks with a preference."""
        counts = self.manifest.get("counts", {})
        return int(counts.get("train_preferences", 0) + counts.get("validation_preferences", 0))

    def directory(self) -> Path:
        return settings.ARTIFACTS / self.path

    def is_marked(self) -> bool:
        """Returns whether the snapshot holds texts that are to be forgotten, or was erased because it did."""
        return bool(self.marked_at or self.erasing_at or self.erased_at)


class SnapshotTask(models.Model):
    """A task that is in a snapshot. There is no foreign key, so that the row outlives the task."""

    pk = models.CompositePrimaryKey("task_id", "snapshot_id")
    task_id = models.BigIntegerField()
    snapshot = models.ForeignKey(Snapshot, on_delete=models.CASCADE, related_name="seen")

    def __str__(self) -> str:
        return f"task {self.task_id} in {self.snapshot_id}"


class SnapshotJob(Job):
    """Somebody's request for a snapshot, which the light worker builds.

    `tasks` have been written so far. The one that waits includes all labels of the time at which it was asked for.
    """

    class State(models.TextChoices):
        QUEUED = "queued"
        BUILDING = "building"
        DONE = "done"
        FAILED = "failed"

    UNDER_WAY = (State.QUEUED, State.BUILDING)

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="snapshot_jobs")
    requested_by = models.ForeignKey(
        "annotator.User", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    tasks = models.PositiveIntegerField(default=0, help_text="written so far")
    snapshot = models.ForeignKey(Snapshot, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    code = models.CharField(max_length=60, blank=True, help_text="of the refusal")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project"], condition=Q(state="queued"), name="one_queued_snapshot_job_per_project"
            ),
        ]

    def __str__(self) -> str:
        return f"snapshot job {self.pk} of {self.project}: {self.state}"


class OwnerlessFolder(models.Model):
    """A folder of a snapshot or a run whose row is gone, with its project; triggers note it for the sweep."""

    path = models.CharField(max_length=300, help_text="relative to the artifacts' folder")

    def __str__(self) -> str:
        return self.path


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
