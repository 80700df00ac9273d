"""The shapes of the human half's REST calls."""

from typing import Any

from django.db import models
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from annotator import audit, protocol
from annotator.api.fields import LARGEST, KnownFields, NumberField, SettingsField, WholeNumberField
from annotator.guidelines import publish_guidelines
from annotator.models import Annotation, Attribute, Membership, Project, Role, Rubric, Task, User
from annotator.models.project import usable_by_the_trainer
from annotator.rubrics import DEFAULT_RUBRIC

LANGUAGE = r"^[a-z]{2,3}(-[a-z0-9]{1,8})?$"
"""As tasks have it: `de`, `pt-br`."""
MOST = 25
"""Annotators of one task, as the model's validator of max_annotators has it."""


class AttributeSerializer(serializers.ModelSerializer[Attribute]):
    class Meta:
        model = Attribute
        fields = ["key", "name", "description", "levels", "checks", "scope"]


class RubricSerializer(serializers.ModelSerializer[Rubric]):
    attributes = AttributeSerializer(many=True, read_only=True)

    class Meta:
        model = Rubric
        fields = ["key", "name", "attributes"]


class ProgressSerializer(serializers.Serializer[Project]):
    """Counts of tasks by state."""

    tasks = serializers.IntegerField(source="tasks_total")
    open = serializers.IntegerField(source="tasks_open")
    complete = serializers.IntegerField(source="tasks_complete")
    quarantined = serializers.IntegerField(source="tasks_quarantined")


class ProjectSerializer(KnownFields, serializers.ModelSerializer[Project]):
    """Its rows come from `with_progress()`."""

    serializer_field_mapping = {**serializers.ModelSerializer.serializer_field_mapping, models.FloatField: NumberField}
    rubric = serializers.SlugRelatedField(slug_field="key", queryset=Rubric.objects.all(), required=False)
    guidelines = serializers.CharField(required=False, allow_blank=True, write_only=True)
    training_config = SettingsField(required=False, validators=[usable_by_the_trainer])
    progress = ProgressSerializer(source="*", read_only=True)

    class Meta:
        model = Project
        fields = [
            "slug",
            "name",
            "description",
            "rubric",
            "guidelines",
            "base_annotators",
            "max_annotators",
            "escalate_above",
            "keep",
            "drop_above",
            "spread_scope",
            "spread_attribute",
            "lease_minutes",
            "paused",
            "quota",
            "queue_order",
            "ask_preference",
            "ask_safety",
            "ask_confidence",
            "qualification_required",
            "qualification_threshold",
            "qualification_tries",
            "gold_every",
            "gold_window",
            "gold_threshold",
            "retrain_after_labels",
            "retrain_after_hours",
            "retrain_cooldown_minutes",
            "promote_automatically",
            "review_unlikely_percent",
            "validation_share",
            "training_config",
            "created_at",
            "progress",
        ]

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        base = attrs.get("base_annotators", self.instance.base_annotators if self.instance else 3)
        most = attrs.get("max_annotators", self.instance.max_annotators if self.instance else min(max(5, base), MOST))
        if most < base:
            raise serializers.ValidationError({"max_annotators": f"It must be at least base_annotators ({base})."})
        rubric = attrs.get("rubric") or (
            self.instance.rubric if self.instance else Rubric.objects.get(key=DEFAULT_RUBRIC)
        )
        spread = attrs.get("spread_attribute", self.instance.spread_attribute if self.instance else "helpfulness")
        if not rubric.attributes.filter(key=spread).exists():
            raise serializers.ValidationError(
                {"spread_attribute": f"The rubric {rubric.key} has no attribute {spread}."}
            )
        return {**attrs, "rubric": rubric, "max_annotators": most}

    def create(self, validated_data: dict[str, Any]) -> Project:
        guidelines = validated_data.pop("guidelines", "")
        project = super().create(validated_data)
        publish_guidelines(project, guidelines)
        return project

    def update(self, instance: Project, validated_data: dict[str, Any]) -> Project:
        before = audit.fields_of(instance)
        guidelines = validated_data.pop("guidelines", "")
        project = super().update(instance, validated_data)
        publish_guidelines(project, guidelines)
        protocol.changed(project, before=before)
        return project


class MemberSerializer(KnownFields, serializers.ModelSerializer[Membership]):
    username = serializers.CharField(source="user.username", max_length=150)
    pseudonym = serializers.CharField(source="user.pseudonym", read_only=True)
    role = serializers.ChoiceField(choices=Role.choices, required=False)
    password = serializers.CharField(write_only=True, required=False, trim_whitespace=False)
    quota = WholeNumberField(required=False, allow_null=True, min_value=0, max_value=LARGEST)
    languages = serializers.ListField(
        child=serializers.RegexField(LANGUAGE, max_length=16), required=False, max_length=20
    )

    class Meta:
        model = Membership
        fields = ["username", "pseudonym", "role", "password", "quota", "languages", "created_at"]


class OwnMembershipSerializer(serializers.ModelSerializer[Membership]):
    project = serializers.CharField(source="project.slug")

    class Meta:
        model = Membership
        fields = ["project", "role"]


class MeSerializer(serializers.ModelSerializer[User]):
    memberships = serializers.SerializerMethodField()

    class Meta:
        model = User
        fields = ["username", "pseudonym", "is_staff", "memberships"]

    @extend_schema_field(OwnMembershipSerializer(many=True))
    def get_memberships(self, user: User) -> Any:
        rows = user.memberships.select_related("project").order_by("project__slug")
        return OwnMembershipSerializer(rows, many=True).data


# Tasks, as managers and as annotators see them -------------------------------------------------------------


class MessageSerializer(serializers.Serializer[Any]):
    role = serializers.CharField()
    content = serializers.CharField()


class TaskResponseSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    text = serializers.CharField()
    model = serializers.CharField()


class TaskSerializer(serializers.ModelSerializer[Task]):
    """For managers and reviewers: with model names, without other people's ratings."""

    responses = serializers.SerializerMethodField()
    id = serializers.CharField(source="external_id")
    conversation = MessageSerializer(many=True, read_only=True)

    class Meta:
        model = Task
        fields = [
            "id",
            "conversation",
            "responses",
            "metadata",
            "priority",
            "state",
            "slots_wanted",
            "open_slots",
            "created_at",
        ]

    @extend_schema_field(TaskResponseSerializer(many=True))
    def get_responses(self, task: Task) -> list[dict[str, str]]:
        return [
            {"id": each.external_id or str(each.position + 1), "text": each.text, "model": each.model}
            for each in task.responses.all()
        ]


class LeasedResponseSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    text = serializers.CharField()


class LeasedTaskSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    conversation = MessageSerializer(many=True)
    responses = LeasedResponseSerializer(many=True)


class LeaseSerializer(serializers.Serializer[Any]):
    """A leased task, or null and the reason. Responses stand in this annotator's own order."""

    assignment = serializers.IntegerField(allow_null=True)
    lease_expires_at = serializers.DateTimeField(required=False)
    task = LeasedTaskSerializer(required=False)
    rubric = RubricSerializer(required=False)
    reason = serializers.CharField(required=False)
    detail = serializers.CharField(required=False)


# What became of what annotators sent -----------------------------------------------------------------------


class StoredRatingSerializer(serializers.Serializer[Any]):
    response = serializers.IntegerField()
    scores = serializers.DictField(child=serializers.IntegerField())


class StoredAnnotationSerializer(serializers.Serializer[Any]):
    """What the database holds now."""

    annotation = serializers.IntegerField()
    assignment = serializers.IntegerField()
    revision = serializers.IntegerField()
    ratings = StoredRatingSerializer(many=True)
    submitted_at = serializers.DateTimeField()
    next = LeaseSerializer(required=False)


class SkippedSerializer(serializers.Serializer[Any]):
    assignment = serializers.IntegerField()
    reason = serializers.CharField()
    note = serializers.CharField()


class ReportedSerializer(serializers.Serializer[Any]):
    assignment = serializers.IntegerField()
    category = serializers.CharField()
    note = serializers.CharField()


class RenewedSerializer(serializers.Serializer[Any]):
    assignment = serializers.IntegerField()
    lease_expires_at = serializers.DateTimeField()


class RatingOutSerializer(StoredRatingSerializer):
    checks = serializers.ListField(child=serializers.CharField())
    confidence = serializers.IntegerField(allow_null=True)
    safe = serializers.BooleanField(allow_null=True)
    unsafe_category = serializers.CharField()


class AnnotationSerializer(serializers.ModelSerializer[Annotation]):
    """One annotation with its ratings, under the rater's pseudonym."""

    task = serializers.CharField(source="assignment.task.external_id")
    annotator = serializers.CharField(source="assignment.annotator.pseudonym")
    counts = serializers.BooleanField(
        source="assignment.counts", help_text="false: a reviewer has rejected it, or its annotator is excluded"
    )
    ratings = serializers.SerializerMethodField()

    class Meta:
        model = Annotation
        fields = [
            "id",
            "task",
            "annotator",
            "revision",
            "origin",
            "ratings",
            "preference",
            "justification",
            "active_seconds",
            "guideline_version",
            "submitted_at",
            "counts",
        ]

    @extend_schema_field(RatingOutSerializer(many=True))
    def get_ratings(self, annotation: Annotation) -> list[dict[str, Any]]:
        return [
            {
                "response": rating.response_id,
                "scores": rating.scores,
                "checks": rating.checks,
                "confidence": rating.confidence,
                "safe": rating.safe,
                "unsafe_category": rating.unsafe_category,
            }
            for rating in annotation.ratings.all()
        ]
