"""The shapes of the machine half's REST calls."""

from typing import Any

from rest_framework import serializers

from rewards.models import RewardModel, ScoringJob, Snapshot, TrainingRun
from rewards.scoring import MOST_ITEMS


class SnapshotSerializer(serializers.ModelSerializer[Snapshot]):
    project = serializers.SlugRelatedField(slug_field="slug", read_only=True)

    class Meta:
        model = Snapshot
        fields = ["id", "project", "content_hash", "train_tasks", "validation_tasks", "labels", "manifest", "created_at"]


class RunRequestSerializer(serializers.Serializer[Any]):
    """Settings for the trainer, over the project's; and whose wish it is."""

    config = serializers.DictField(required=False)
    reason = serializers.CharField(required=False, max_length=200, default="asked for over REST")


class TrainingRunSerializer(serializers.ModelSerializer[TrainingRun]):
    project = serializers.SlugRelatedField(slug_field="slug", read_only=True)
    snapshot = serializers.SlugRelatedField(slug_field="content_hash", read_only=True)
    reward_model = serializers.SerializerMethodField()

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
            "verdict",
            "error",
            "log",
            "reward_model",
            "created_at",
            "started_at",
            "finished_at",
        ]

    def get_reward_model(self, run: TrainingRun) -> int | None:
        model = RewardModel.objects.filter(run=run).first()
        return model.pk if model else None


class RewardModelSerializer(serializers.ModelSerializer[RewardModel]):
    project = serializers.SlugRelatedField(slug_field="slug", read_only=True)
    evaluations = serializers.SerializerMethodField()
    scored = serializers.IntegerField(source="scores.count", read_only=True)

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
            "evaluations",
            "created_at",
            "promoted_at",
        ]

    def get_evaluations(self, model: RewardModel) -> dict[str, Any]:
        return {each.name: each.metrics for each in model.evaluations.all()}


class MessageSerializer(serializers.Serializer[Any]):
    role = serializers.ChoiceField(choices=["system", "user", "assistant"])
    content = serializers.CharField(trim_whitespace=False, allow_blank=True)


class ScoreItemSerializer(serializers.Serializer[Any]):
    conversation = MessageSerializer(many=True, allow_empty=False)
    response = serializers.CharField(trim_whitespace=False)


class ScoreRequestSerializer(serializers.Serializer[Any]):
    model = serializers.IntegerField(required=False, help_text="a reward model's id; the champion by default")
    project = serializers.SlugField(required=False, help_text="whose champion; needed if you see more than one")
    items = ScoreItemSerializer(many=True, allow_empty=False, max_length=MOST_ITEMS)


class ScoringJobSerializer(serializers.ModelSerializer[ScoringJob]):
    model = serializers.IntegerField(source="reward_model_id")

    class Meta:
        model = ScoringJob
        fields = ["id", "model", "state", "results", "error", "created_at"]
