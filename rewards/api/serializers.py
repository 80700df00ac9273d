"""The shapes of the machine half's REST calls."""

from typing import Any, TypeVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from annotator.api.fields import KnownFields, SettingsField
from annotator.api.model_serializers import ModelSerializer
from annotator.api.segment_fields import CutField
from annotator.infrastructure.storage.hidden_paths import value_without_places
from annotator.models import Project
from annotator.stages.segmenting import NotAPartition, partition
from rewards.evaluation.evaluation import VALIDATION, newest_by_name
from rewards.model_downloads.licenses import LONGEST_TEXT, MODEL_LICENSES
from rewards.models import Policy, RewardModel, RunState, ScoringJob, Snapshot, SnapshotJob, TrainingRun
from rewards.reasons import in_english, verdict_in_english
from rewards.registry import registry
from rewards.reports import model_figures, run_report
from rewards.runs.setting_texts import SETTINGS
from rewards.scoring import MOST_ITEMS

Learnt = TypeVar("Learnt", RewardModel, Policy)
ROLES = ["system", "user", "assistant"]


class SnapshotSerializer(ModelSerializer[Snapshot]):
    project: "serializers.SlugRelatedField[Project]" = serializers.SlugRelatedField(slug_field="slug", read_only=True)

    class Meta:
        model = Snapshot
        fields = [
            "id",
            "project",
            "content_hash",
            "train_tasks",
            "validation_tasks",
            "labels",
            "manifest",
            "created_at",
            "redacted_tasks",
            "deleted_tasks",
            "marked_at",
            "erased_at",
        ]


class SnapshotJobSerializer(ModelSerializer[SnapshotJob]):
    """`state` goes from *queued* to *building* and ends as *done*, with the snapshot, or *failed*, with the reason."""

    project: "serializers.SlugRelatedField[Project]" = serializers.SlugRelatedField(slug_field="slug", read_only=True)
    snapshot = SnapshotSerializer(allow_null=True, read_only=True)
    # A pattern, as an enum would share its name with the states of other work.
    state = serializers.RegexField(f"^({'|'.join(SnapshotJob.State.values)})$", read_only=True)

    class Meta:
        model = SnapshotJob
        fields = ["id", "project", "state", "tasks", "snapshot", "code", "error", "created_at", "finished_at"]


@extend_schema_field(
    {
        "type": "object",
        "properties": {name: {"description": words.help} for name, words in SETTINGS.items()},
        "additionalProperties": False,
    }
)
class TrainerSettingsField(SettingsField):
    """The trainer's settings, with a sentence on each in the schema."""


class RunRequestSerializer(KnownFields):
    """Trainer settings that override the project's, and the reason for the run."""

    config = TrainerSettingsField(required=False)
    reason = serializers.CharField(required=False, max_length=200, default="requested over REST")


class RunSerializer(ModelSerializer[TrainingRun]):
    """What runs of every kind have."""

    project: "serializers.SlugRelatedField[Project]" = serializers.SlugRelatedField(slug_field="slug", read_only=True)
    snapshot: "serializers.SlugRelatedField[Snapshot]" = serializers.SlugRelatedField(
        slug_field="content_hash", read_only=True, allow_null=True
    )
    reason = serializers.SerializerMethodField()
    config = serializers.SerializerMethodField()

    class Meta:
        model = TrainingRun
        fields = [
            "id",
            "project",
            "snapshot",
            "state",
            "reason",
            "config",
            "config_hash",
            "code_version",
            "seed",
            "attempt",
            "worker",
            "heartbeat_at",
            "progress",
            "losses",
            "metrics",
        ]
        times = ("created_at", "started_at", "finished_at")

    def get_reason(self, run: TrainingRun) -> str:
        return in_english(run.reason)

    @extend_schema_field({"type": "object", "additionalProperties": {}})
    def get_config(self, run: TrainingRun) -> Any:
        """Runs from before backbones had names hold folders of this machine."""
        return value_without_places(run.config)


class TrainingRunSerializer(RunSerializer):
    """A run from the snapshot to the verdict on its model."""

    reward_model: "serializers.PrimaryKeyRelatedField[RewardModel]" = serializers.PrimaryKeyRelatedField(
        read_only=True, allow_null=True
    )
    metrics = serializers.SerializerMethodField()
    verdict = serializers.SerializerMethodField()
    judged_on = serializers.SerializerMethodField(
        help_text="of which prompts and which models the verdict's numbers are; empty where that is not known"
    )

    class Meta(RunSerializer.Meta):
        fields = [
            *RunSerializer.Meta.fields,
            *("verdict", "judged_on", "error", "log", "reward_model"),
            *RunSerializer.Meta.times,
        ]

    @extend_schema_field({"type": "object", "additionalProperties": {}})
    def get_metrics(self, run: TrainingRun) -> Any:
        """Leaves out single responses: whoever rates one of them must not see its label."""
        return {name: value for name, value in run.metrics.items() if name != "largest_errors"}

    @extend_schema_field({"type": "object", "additionalProperties": {}})
    def get_verdict(self, run: TrainingRun) -> Any:
        return verdict_in_english(run.verdict)

    def get_judged_on(self, run: TrainingRun) -> str:
        return run_report.judged_on(run.verdict, run.snapshot.manifest) if run.snapshot else ""


class RequestedRunSerializer(TrainingRunSerializer):
    """The queued run, and whether there is anything new to learn."""

    # A pattern, as an enum would share its name with the states of other work.
    state = serializers.RegexField(f"^({'|'.join(RunState.values)})$", read_only=True)
    unchanged_since = serializers.IntegerField(
        read_only=True,
        allow_null=True,
        help_text="the newest version, if nothing has been labelled since it was trained: with the same settings the "
        "run ends without a new model",
    )

    class Meta(TrainingRunSerializer.Meta):
        fields = [*TrainingRunSerializer.Meta.fields, "unchanged_since"]


class LearntSerializer(ModelSerializer[Learnt]):
    """What models and policies say of the snapshot that they have learnt from."""

    marked = serializers.SerializerMethodField(help_text="tasks that it learnt from were redacted or deleted since")
    erased = serializers.SerializerMethodField(help_text="its files are gone")

    def get_marked(self, learnt: Learnt) -> bool:
        return bool(learnt.run.snapshot and learnt.run.snapshot.is_marked())

    def get_erased(self, learnt: Learnt) -> bool:
        return bool(learnt.run.snapshot and learnt.run.snapshot.erased_at)


class RewardModelSerializer(LearntSerializer[RewardModel]):
    """A version of the project's reward model, with its figures and where it comes from."""

    project: "serializers.SlugRelatedField[Project]" = serializers.SlugRelatedField(slug_field="slug", read_only=True)
    evaluations = serializers.SerializerMethodField()
    learnt_labels = serializers.SerializerMethodField(help_text="labels that it has learnt from")
    held_out_labels = serializers.SerializerMethodField(help_text="labels that were kept to judge it by")
    measured_on = serializers.SerializerMethodField(help_text="on which prompts its figures were measured")
    beside_length = serializers.SerializerMethodField(
        help_text="says so where it orders pairs no better than by their length; empty elsewhere"
    )
    scored = serializers.IntegerField(read_only=True)
    lineage = serializers.SerializerMethodField()

    class Meta:
        model = RewardModel
        fields = [
            "id",
            "project",
            "version",
            "run",
            "attributes",
            "attribute_weights",
            "is_champion",
            "scored",
            "score_precision",
            "evaluations",
            "learnt_labels",
            "held_out_labels",
            "measured_on",
            "beside_length",
            "lineage",
            "marked",
            "erased",
            "license",
            "license_text",
            "created_at",
            "promoted_at",
        ]

    def get_evaluations(self, model: RewardModel) -> dict[str, Any]:
        """Returns the newest evaluation of each name, without the parts of the data, which `evaluations/` has."""
        newest = newest_by_name(model.evaluations.all())
        return {name: {key: metrics[key] for key in metrics if key != "slices"} for name, metrics in newest.items()}

    def get_learnt_labels(self, model: RewardModel) -> int | None:
        return registry.labels(model).learnt

    def get_held_out_labels(self, model: RewardModel) -> int | None:
        return registry.labels(model).held_out

    def get_measured_on(self, model: RewardModel) -> str:
        return model_figures.measured_on(self._validation(model))

    def get_beside_length(self, model: RewardModel) -> str:
        return model_figures.beside_length(self._validation(model))

    def _validation(self, model: RewardModel) -> dict[str, Any]:
        return newest_by_name(model.evaluations.all()).get(VALIDATION, {})

    def get_lineage(self, model: RewardModel) -> dict[str, Any]:
        return registry.lineage(model)


class PromotedSerializer(RewardModelSerializer):
    """The new champion, and why its scores come later."""

    scores_wait = serializers.CharField(read_only=True, help_text="why no scoring has started; empty where it has")

    class Meta(RewardModelSerializer.Meta):
        fields = [*RewardModelSerializer.Meta.fields, "scores_wait"]


class PromotionRequestSerializer(KnownFields):
    """`confirm` asks for a model that the gate turned down."""

    confirm = serializers.BooleanField(default=False)


class LicenseSerializer(KnownFields):
    """An identifier of the Hugging Face Hub; `license_text` says more, and must where the licence is *other*."""

    license = serializers.ChoiceField(MODEL_LICENSES)
    license_text = serializers.CharField(max_length=LONGEST_TEXT, default="", allow_blank=True)


class VerificationSerializer(serializers.Serializer[Any]):
    """Says whether every file is the one that was written, and which are not."""

    intact = serializers.BooleanField()
    problems = serializers.ListField(child=serializers.CharField())


@extend_schema_field({"type": "string", "pattern": f"^({'|'.join(ROLES)})$"})
class SpeakerField(serializers.ChoiceField):
    """A role in a conversation; in the schema a pattern, as an enum would share its name with the members' roles."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=ROLES, **kwargs)


class TurnSerializer(KnownFields):
    role = SpeakerField()
    content = serializers.CharField(trim_whitespace=False, allow_blank=True)


class ScoreItemSerializer(KnownFields):
    conversation = TurnSerializer(many=True, allow_empty=False)
    response = serializers.CharField(trim_whitespace=False)
    segments = CutField(required=False, help_text="[[start, end], ...] of the response, to be scored one by one")

    def validate(self, item: dict[str, Any]) -> dict[str, Any]:
        if item.get("segments"):
            try:
                item["segments"] = [list(one) for one in partition(item["response"], item["segments"])]
            except NotAPartition as wrong:
                raise serializers.ValidationError({"segments": [str(wrong)]}) from wrong
        return item


class ScoreRequestSerializer(KnownFields):
    model = serializers.IntegerField(required=False, help_text="a reward model's id; the champion by default")
    project = serializers.SlugField(required=False, help_text="whose champion; needed if you see more than one")
    items = serializers.ListField(child=ScoreItemSerializer(), allow_empty=False, max_length=MOST_ITEMS)


class ResultSerializer(serializers.Serializer[Any]):
    scores = serializers.DictField(child=serializers.FloatField())
    reward = serializers.FloatField()
    uncertainty = serializers.FloatField(allow_null=True, help_text="the reward's, by the model's ensemble of heads")
    truncated = serializers.BooleanField(help_text="the item was over the token limit and lost some of its text")
    precision = serializers.CharField(required=False, help_text="what it was computed in: float32 or bfloat16")
    segments = serializers.ListField(
        child=serializers.DictField(child=serializers.FloatField()),
        required=False,
        help_text="of an item with segments, by a model that scores them: each one's scores by aspect",
    )


class ScoredSerializer(serializers.Serializer[Any]):
    """`results` stand in the order of the items."""

    model = serializers.IntegerField()
    results = ResultSerializer(many=True)


class ScoringJobSerializer(ModelSerializer[ScoringJob]):
    model = serializers.IntegerField(source="reward_model_id")

    class Meta:
        model = ScoringJob
        fields = ["id", "model", "state", "results", "error", "created_at"]
