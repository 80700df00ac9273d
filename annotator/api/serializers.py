"""The shapes of the human half's REST calls."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from annotator.annotation import ResponseRating, Submission
from annotator.models import (
    Annotation,
    Attribute,
    Guideline,
    Membership,
    Project,
    Role,
    Rubric,
    SkipReason,
    Task,
    UnsafeCategory,
    User,
)
from annotator.rubrics import DEFAULT_RUBRIC


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


class ProjectSerializer(serializers.ModelSerializer[Project]):
    rubric = serializers.SlugRelatedField(slug_field="key", queryset=Rubric.objects.all(), required=False)
    guidelines = serializers.CharField(required=False, allow_blank=True, write_only=True)
    progress = serializers.SerializerMethodField()

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
            "ask_preference",
            "ask_safety",
            "ask_confidence",
            "retrain_after_labels",
            "retrain_after_hours",
            "validation_share",
            "training_config",
            "created_at",
            "progress",
        ]

    @extend_schema_field(ProgressSerializer)
    def get_progress(self, project: Project) -> dict[str, int]:
        return dict(ProgressSerializer(Project.objects.with_progress().get(pk=project.pk)).data)

    def to_internal_value(self, data: Any) -> Any:
        """A field we do not know is a typing error that would silently leave a default in force."""
        if isinstance(data, dict) and (unknown := sorted(set(data) - set(self.fields), key=str)):
            raise serializers.ValidationError({str(name): ["There is no such field."] for name in unknown})
        return super().to_internal_value(data)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        base = attrs.get("base_annotators", self.instance.base_annotators if self.instance else 3)
        most = attrs.get("max_annotators", self.instance.max_annotators if self.instance else max(5, base))
        if most < base:
            raise serializers.ValidationError({"max_annotators": f"It must be at least base_annotators ({base})."})
        rubric = attrs.get("rubric") or (self.instance.rubric if self.instance else Rubric.objects.get(key=DEFAULT_RUBRIC))
        spread = attrs.get("spread_attribute", self.instance.spread_attribute if self.instance else "helpfulness")
        if not rubric.attributes.filter(key=spread).exists():
            raise serializers.ValidationError({"spread_attribute": f"The rubric {rubric.key} has no attribute {spread}."})
        return {**attrs, "rubric": rubric, "max_annotators": most}

    def create(self, validated_data: dict[str, Any]) -> Project:
        guidelines = validated_data.pop("guidelines", "")
        project = super().create(validated_data)
        publish_guidelines(project, guidelines)
        return project

    def update(self, instance: Project, validated_data: dict[str, Any]) -> Project:
        guidelines = validated_data.pop("guidelines", "")
        project = super().update(instance, validated_data)
        publish_guidelines(project, guidelines)
        return project


def publish_guidelines(project: Project, text: str) -> None:
    """A changed text becomes the next version."""
    current = project.current_guideline()
    if text and (current is None or current.text != text):
        Guideline.objects.create(project=project, version=current.version + 1 if current else 1, text=text)


class MemberSerializer(serializers.ModelSerializer[Membership]):
    username = serializers.CharField(source="user.username", max_length=150)
    pseudonym = serializers.CharField(source="user.pseudonym", read_only=True)
    role = serializers.ChoiceField(choices=Role.choices, default=Role.ANNOTATOR)
    password = serializers.CharField(write_only=True, required=False)

    class Meta:
        model = Membership
        fields = ["username", "pseudonym", "role", "password", "created_at"]


class MeSerializer(serializers.ModelSerializer[User]):
    memberships = serializers.SerializerMethodField()

    class Meta:
        model = User
        fields = ["username", "pseudonym", "is_staff", "memberships"]

    def get_memberships(self, user: User) -> list[dict[str, str]]:
        rows = user.memberships.select_related("project").order_by("project__slug")
        return [{"project": row.project.slug, "role": row.role} for row in rows]


class TokenRequestSerializer(serializers.Serializer[User]):
    username = serializers.CharField()
    password = serializers.CharField()


class TokenSerializer(serializers.Serializer[User]):
    token = serializers.CharField()
    expiry = serializers.DateTimeField(allow_null=True)


# Tasks, as managers and as annotators see them -------------------------------------------------------------


class TaskSerializer(serializers.ModelSerializer[Task]):
    """For managers and reviewers: with model names, without other people's ratings."""

    responses = serializers.SerializerMethodField()
    id = serializers.CharField(source="external_id")

    class Meta:
        model = Task
        fields = ["id", "conversation", "responses", "metadata", "priority", "state", "slots_wanted", "open_slots", "created_at"]

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
    conversation = serializers.ListField(child=serializers.DictField(child=serializers.CharField()))
    responses = LeasedResponseSerializer(many=True)


class LeaseSerializer(serializers.Serializer[Any]):
    """A leased task, or null and the reason. Responses stand in this annotator's own order."""

    assignment = serializers.IntegerField(allow_null=True)
    lease_expires_at = serializers.DateTimeField(required=False)
    task = LeasedTaskSerializer(required=False)
    rubric = RubricSerializer(required=False)
    reason = serializers.CharField(required=False)
    detail = serializers.CharField(required=False)


# What annotators send --------------------------------------------------------------------------------------


class WholeNumberField(serializers.IntegerField):
    """An integer as it is: no text and no truth value passes for one, as a stored score has to be what was chosen."""

    default_error_messages = {"not_whole": "{value} is not a whole number."}

    def to_internal_value(self, data: Any) -> int:
        if type(data) is not int:
            self.fail("not_whole", value=repr(data))
        return super().to_internal_value(data)


class ScoreField(WholeNumberField):
    default_error_messages = {"min_value": "Scores go from 0 to 4.", "max_value": "Scores go from 0 to 4."}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(min_value=0, max_value=4, **kwargs)


class StorableText(serializers.CharField):
    """Text that PostgreSQL stores: DRF refuses NUL, we refuse lone surrogates too."""

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise serializers.ValidationError("The text holds half a character pair; send valid Unicode.")
        return text


class RatingSerializer(serializers.Serializer[Any]):
    response = WholeNumberField()
    scores = serializers.DictField(child=ScoreField())
    checks = serializers.ListField(child=StorableText(), required=False)
    confidence = WholeNumberField(min_value=0, max_value=2, required=False, allow_null=True)
    safe = serializers.BooleanField(required=False, allow_null=True)
    unsafe_category = serializers.ChoiceField(choices=UnsafeCategory.choices, required=False, allow_blank=True)


class SubmissionSerializer(serializers.Serializer[Any]):
    """A finished rating. `preference` is relative to the order of the leased task's responses."""

    ratings = RatingSerializer(many=True)
    preference = WholeNumberField(required=False, allow_null=True)
    justification = StorableText(required=False, allow_blank=True, trim_whitespace=False, max_length=20_000)
    active_seconds = serializers.FloatField(required=False, allow_null=True, min_value=0, max_value=86_400 * 7)

    def validate_ratings(self, ratings: list[dict[str, Any]]) -> list[dict[str, Any]]:
        named = [rating["response"] for rating in ratings]
        if len(set(named)) != len(named):
            raise serializers.ValidationError("A response is rated twice.")
        return ratings

    def submission(self) -> Submission:
        data = self.validated_data
        return Submission(
            ratings={rating["response"]: _response_rating(rating) for rating in data["ratings"]},
            preference=data.get("preference"),
            justification=data.get("justification", ""),
            active_seconds=data.get("active_seconds"),
        )


def _response_rating(rating: dict[str, Any]) -> ResponseRating:
    return ResponseRating(
        scores=rating["scores"],
        checks=tuple(rating.get("checks", ())),
        confidence=rating.get("confidence"),
        safe=rating.get("safe"),
        unsafe_category=rating.get("unsafe_category", ""),
    )


class SkipSerializer(serializers.Serializer[Any]):
    reason = serializers.ChoiceField(choices=SkipReason.choices)
    note = StorableText(required=False, allow_blank=True, default="", max_length=5_000)


class ReportSerializer(serializers.Serializer[Any]):
    category = serializers.ChoiceField(choices=UnsafeCategory.choices)
    note = StorableText(required=False, allow_blank=True, default="", max_length=5_000)


class AnnotationSerializer(serializers.ModelSerializer[Annotation]):
    """One annotation with its ratings, under the rater's pseudonym."""

    task = serializers.CharField(source="assignment.task.external_id")
    annotator = serializers.CharField(source="assignment.annotator.pseudonym")
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
        ]

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


class AgreementSerializer(serializers.Serializer[Any]):
    kappa = serializers.FloatField(allow_null=True)
    samples = serializers.IntegerField()
    ratings = serializers.IntegerField()
    undefined_because = serializers.CharField()


class RejectedSerializer(serializers.Serializer[Any]):
    line = serializers.IntegerField()
    error = serializers.CharField()


class ImportResultSerializer(serializers.Serializer[Any]):
    created = serializers.IntegerField()
    existing = serializers.IntegerField()
    rejected = RejectedSerializer(many=True)
