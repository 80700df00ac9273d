"""Serializers that several REST calls of the human half share: projects, members, tasks, leases and annotations."""

from collections.abc import Sequence
from typing import Any

from django.db import models
from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema_field
from rest_framework import serializers

from annotator.api.fields import KnownFields, NumberField, RankingField, SettingsField
from annotator.api.model_serializers import ModelSerializer
from annotator.api.rubrics import text_of
from annotator.api.segment_fields import (
    CommentSerializer,
    CutField,
    RatedSegmentSerializer,
    SegmentSerializer,
    shown_comments,
    shown_scores,
)
from annotator.consensus import ProtocolPreview
from annotator.db.storable_text import shown_name
from annotator.models import Annotation, Attribute, Membership, Project, Rating, Role, Rubric, Task
from annotator.models.agreement import Progress
from annotator.models.public_ids import response_number
from annotator.projects import settings
from annotator.projects.preset_rubrics import RubricText
from annotator.projects.settings_check import never_met

ASKED = ["preference", "ranking", "confidence", "safe", "feedback", "edit", "domain", "language", "segments"]
"""What a project may ask of an annotator besides the scores."""


ABOUT = ["guidelines_version", "created_at", "archived_at", "own"]
"""What everybody sees of a project besides its settings."""


class AttributeSerializer(ModelSerializer[Attribute]):
    class Meta:
        model = Attribute
        fields = ["key", "name", "description", "levels", "checks", "scope"]


class RubricSerializer(ModelSerializer[Rubric]):
    attributes = AttributeSerializer(many=True, read_only=True)

    class Meta:
        model = Rubric
        fields = ["key", "version", "name", "attributes"]


class ProgressSerializer(serializers.Serializer[Progress]):
    """Counts of tasks by state. Those of a large project are renewed in the background: they were made at `as_of`."""

    tasks = serializers.IntegerField(source="total")
    open = serializers.IntegerField()
    complete = serializers.IntegerField()
    quarantined = serializers.IntegerField()
    as_of = serializers.DateTimeField(allow_null=True, help_text="null: just now")


class OwnPartSerializer(serializers.Serializer[Project]):
    """The caller's own part in a project."""

    role = serializers.CharField(source="own_role", allow_null=True)
    done = serializers.IntegerField(source="own_done", help_text="tasks that they have rated")
    quota = serializers.IntegerField(source="own_quota", help_text="tasks that they may rate; 0: no limit")


class AnnotatorsProjectSerializer(ModelSerializer[Project]):
    """What annotators see of a project: what it asks of them, and their own part.

    Rows have to come from `as_seen_by()`.
    """

    rubric = serializers.CharField(source="rubric.key")
    guidelines_version = serializers.IntegerField(read_only=True, help_text="the one in force; 0: none")
    own = OwnPartSerializer(source="*", read_only=True)

    class Meta:
        model = Project
        fields = [*settings.seen_by(Role.ANNOTATOR), *ABOUT]


class ReviewersProjectSerializer(AnnotatorsProjectSerializer):
    """What reviewers see of a project: the protocol and the progress as well.

    Rows have to come from `as_seen_by()` and to have their `progress` (annotator/projects/figures.py).
    """

    progress = ProgressSerializer(read_only=True)

    class Meta(AnnotatorsProjectSerializer.Meta):
        fields = [*settings.seen_by(Role.REVIEWER), *ABOUT, "progress"]


@extend_schema_field({"oneOf": [{"type": "string"}, {"$ref": "#/components/schemas/RubricText"}]})
class RubricChoice(serializers.Field[Any, Any, Any, Any]):
    """The key of a rubric that is offered to new projects, or the text of one that becomes the project's own."""

    default_error_messages = {
        "unknown": "No rubric {wanted} is offered. GET rubrics/ lists them.",
        "put": "A rubric's text is sent to projects/SLUG/rubric/ with PUT.",
        "shape": "Send the key of a rubric, or a rubric: an object with key, name and attributes.",
    }

    def to_internal_value(self, data: Any) -> Rubric | RubricText:
        if isinstance(data, dict) and self.root.instance is not None:
            self.fail("put")
        if isinstance(data, dict):
            return text_of(data)
        if not isinstance(data, str):
            self.fail("shape")
        rubric = self._choices().filter(key=data).first()
        if rubric is None:
            self.fail("unknown", wanted=shown_name(data))
        return rubric

    def _choices(self) -> models.QuerySet[Rubric]:
        # The project's own, so that what GET answers can be sent back.
        own = self.root.instance.rubric_id if self.root.instance is not None else None
        offered = Rubric.objects.offered_to(self.context["request"].user)
        return Rubric.objects.filter(models.Q(pk__in=offered) | models.Q(pk=own)).order_by("project")

    def to_representation(self, value: Rubric) -> str:
        return value.key


class ProjectSerializer(KnownFields, ModelSerializer[Project]):
    """All of a project, for its managers. The stage function checks whether the settings are allowed."""

    # NumberField refuses "nan", which would pass every bound of the model's fields.
    serializer_field_mapping = {**serializers.ModelSerializer.serializer_field_mapping, models.FloatField: NumberField}
    slug = serializers.SlugField(max_length=50)
    rubric = RubricChoice(required=False)
    guidelines = serializers.CharField(required=False, allow_blank=True, write_only=True)
    guidelines_version = serializers.IntegerField(read_only=True, help_text="the one in force; 0: none")
    training_config = SettingsField(required=False)
    own = OwnPartSerializer(source="*", read_only=True)
    progress = ProgressSerializer(read_only=True)
    warnings = serializers.SerializerMethodField(help_text="limits of the spread that no two ratings can exceed")

    class Meta:
        model = Project
        fields = [*settings.seen_by(Role.MANAGER), settings.TRAINER, "guidelines", *ABOUT, "progress", "warnings"]
        read_only_fields = ["created_at", "archived_at"]

    def get_warnings(self, project: Project) -> list[str]:
        return never_met(project)

    def to_representation(self, instance: Any) -> dict[str, Any]:
        """Returns as much as the caller's role in the project lets them see; rows have to come from `as_seen_by()`."""
        if instance.own_role == Role.MANAGER:
            return dict(super().to_representation(instance))
        is_reviewer = instance.own_role == Role.REVIEWER
        serializer = ReviewersProjectSerializer if is_reviewer else AnnotatorsProjectSerializer
        return dict(serializer(instance).data)


class EffectSerializer(serializers.Serializer[Any]):
    """A number that a change would bring, with the half of its 95 % interval where it is estimated from a sample."""

    number = serializers.IntegerField()
    margin = serializers.IntegerField(help_text="0: exact")


class ProtocolPreviewSerializer(serializers.Serializer[Any]):
    """What a change of the protocol would do to the tasks and labels. `then` in the context is the changed project."""

    tasks = serializers.IntegerField(help_text="tasks with annotations or leases")
    examined = serializers.IntegerField(help_text="those of them that were read; fewer than `tasks`: a random sample")
    is_exact = serializers.BooleanField()
    reopened = EffectSerializer(help_text="complete tasks that would be open again")
    completed = EffectSerializer(help_text="open tasks that would be complete")
    dropped = EffectSerializer(help_text="tasks whose annotations would be too far apart")
    kept_again = EffectSerializer(help_text="dropped tasks that would yield labels again")
    labels_lost = EffectSerializer()
    labels_gained = EffectSerializer()
    labels_changed = EffectSerializer(help_text="labels whose mean would be another one")
    annotations_before = EffectSerializer(help_text="annotations that open tasks still want")
    annotations_after = EffectSerializer(help_text="annotations that they would still want")
    warnings = serializers.SerializerMethodField(help_text="limits of the spread that no two ratings could exceed")

    def get_warnings(self, _preview: ProtocolPreview) -> list[str]:
        return never_met(self.context["then"])


ProjectByRole = PolymorphicProxySerializer(
    component_name="ProjectByRole",
    serializers=[ProjectSerializer, ReviewersProjectSerializer, AnnotatorsProjectSerializer],
    resource_type_field_name=None,
)
"""What a caller sees of a project depends on their role in it."""


class OwnMembershipSerializer(ModelSerializer[Membership]):
    """The caller's own membership of a project. Rows have to come from `with_pseudonym()`."""

    project = serializers.CharField(source="project.slug")
    offered_role = serializers.CharField(read_only=True, help_text="to be accepted by them; empty: none")
    pseudonym = serializers.CharField(help_text="in this project's exports, and nowhere else")

    class Meta:
        model = Membership
        fields = ["project", "role", "offered_role", "pseudonym"]


class MessageSerializer(serializers.Serializer[Any]):
    role = serializers.CharField()
    content = serializers.CharField()


class TaskResponseSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    text = serializers.CharField()
    model = serializers.CharField()
    metadata = serializers.DictField(help_text="what came with the response")


class TaskSerializer(ModelSerializer[Task]):
    """A task as managers and reviewers see it: with model names, without anybody's ratings."""

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
    def get_responses(self, task: Task) -> list[dict[str, Any]]:
        return [
            {
                "id": response.external_id or str(response.position + 1),
                "text": response.text,
                "model": response.model,
                "metadata": response.metadata,
            }
            for response in task.responses.all()
        ]


class LeasedResponseSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    text = serializers.CharField()
    segments = SegmentSerializer(many=True, required=False, help_text="where the rubric has attributes of segments")


class LeasedTaskSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    conversation = MessageSerializer(many=True)
    responses = LeasedResponseSerializer(many=True)


class LeaseSerializer(serializers.Serializer[Any]):
    """A leased task, or null and the reason for it. Responses are in this annotator's own order."""

    assignment = serializers.IntegerField(allow_null=True)
    lease_expires_at = serializers.DateTimeField(required=False)
    task = LeasedTaskSerializer(required=False)
    asks = serializers.ListField(
        child=serializers.ChoiceField(choices=ASKED),
        required=False,
        help_text="what a rating has to answer besides scores, by the names of its fields",
    )
    rubric = RubricSerializer(required=False)
    reason = serializers.CharField(required=False)
    detail = serializers.CharField(required=False)


# What became of what annotators sent -----------------------------------------------------------------------


class StoredRatingSerializer(serializers.Serializer[Any]):
    response = serializers.IntegerField()
    scores = serializers.DictField(child=serializers.IntegerField())
    segments = RatedSegmentSerializer(many=True, required=False)


class StoredAnnotationSerializer(serializers.Serializer[Any]):
    """The rating as the database holds it now."""

    annotation = serializers.IntegerField()
    assignment = serializers.IntegerField()
    revision = serializers.IntegerField()
    ratings = StoredRatingSerializer(many=True)
    ranking = RankingField(allow_null=True)
    submitted_at = serializers.DateTimeField()
    counts = serializers.BooleanField(help_text="false: the task had no room left, so it is kept as an extra")
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
    feedback = serializers.CharField()
    edit = serializers.CharField()
    edit_summary = serializers.CharField()
    cut = CutField(required=False, help_text="the annotator's own segments")
    comments = CommentSerializer(many=True, required=False)


class AnnotationSerializer(ModelSerializer[Annotation]):
    """One annotation with its ratings. Rows have to carry `pseudonym`, the rater's name in the project."""

    task = serializers.CharField(source="assignment.task.external_id")
    annotator = serializers.CharField(source="pseudonym")
    counts = serializers.BooleanField(
        source="assignment.counts", help_text="false: an extra, rejected by a reviewer, or its annotator is excluded"
    )
    extra = serializers.BooleanField(
        source="assignment.extra", help_text="it came when its task had no room left; a reviewer may accept it"
    )
    ratings = serializers.SerializerMethodField()
    ranking = RankingField(allow_null=True)

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
            "ranking",
            "justification",
            "domain",
            "language",
            "active_seconds",
            "guideline_version",
            "submitted_at",
            "counts",
            "extra",
        ]

    @extend_schema_field(RatingOutSerializer(many=True))
    def get_ratings(self, annotation: Annotation) -> list[dict[str, Any]]:
        return [shown_rating(rating, annotation.aspects) for rating in annotation.ratings.all()]


_ANSWERS = ("scores", "checks", "confidence", "safe", "unsafe_category", "feedback", "edit", "edit_summary")


def shown_rating(rating: Rating, aspects: Sequence[str]) -> dict[str, Any]:
    """Returns a stored rating as it is sent; fields of segments only where segments were rated."""
    shown = {"response": response_number(rating.response_id)} | {name: vars(rating)[name] for name in _ANSWERS}
    if rating.segment_scores is None:
        return shown
    cut = {"cut": rating.cut} if rating.cut else {}
    segments = {"segments": shown_scores(aspects, rating.segment_scores)}
    return shown | segments | cut | {"comments": shown_comments(rating.comments)}
