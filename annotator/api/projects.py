"""REST calls on projects: list, create, change, archive, delete."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import models
from django.db.models import QuerySet
from django_filters import rest_framework as filters  # type: ignore[import-untyped]
from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    PolymorphicProxySerializer,
    extend_schema,
    extend_schema_field,
    extend_schema_view,
)
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from annotator.analysis import figures
from annotator.api.fields import KnownFields, NumberField, SettingsField, validated
from annotator.api.filters import SinceFilter
from annotator.api.model_serializers import ModelSerializer
from annotator.api.rubrics import text_of
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.db.storable_text import shown_name
from annotator.infrastructure.web.query_parameters import flag
from annotator.managing import archive, deletion, project_settings, setting_table
from annotator.managing.preset_rubrics import RubricText
from annotator.managing.settings_check import never_met
from annotator.models import Project, Role, Rubric, User
from annotator.models.agreement import Progress
from annotator.models.project import ProjectQuerySet
from annotator.reading import access
from annotator.stages.consensus import ProtocolPreview

ABOUT = ["guidelines_version", "created_at", "archived_at", "own"]
"""What everybody sees of a project besides its settings."""


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
        fields = [*setting_table.SEEN_BY[Role.ANNOTATOR], *ABOUT]


class ReviewersProjectSerializer(AnnotatorsProjectSerializer):
    """What reviewers see of a project: the protocol and the progress as well.

    Rows have to come from `as_seen_by()` and to have their `progress` (annotator/analysis/figures.py).
    """

    progress = ProgressSerializer(read_only=True)

    class Meta(AnnotatorsProjectSerializer.Meta):
        fields = [*setting_table.SEEN_BY[Role.REVIEWER], *ABOUT, "progress"]


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
        # The project's own, so that what GET answers can be sent back.
        own = self.root.instance.rubric_id if self.root.instance is not None else None
        offered = Rubric.objects.offered_to(self.context["request"].user)
        choices = Rubric.objects.filter(models.Q(pk__in=offered) | models.Q(pk=own)).order_by("project")
        rubric = choices.filter(key=data).first()
        if rubric is None:
            self.fail("unknown", wanted=shown_name(data))
        return rubric

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
        fields = [
            *setting_table.SEEN_BY[Role.MANAGER],
            setting_table.TRAINER,
            "guidelines",
            *ABOUT,
            "progress",
            "warnings",
        ]
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


class ProjectFilter(filters.FilterSet):  # type: ignore[misc]
    archived = SinceFilter("archived_at", help_text="true: the archived ones instead")


@extend_schema_view(
    get=extend_schema(responses=ProjectByRole),
    post=extend_schema(
        responses={201: ProjectSerializer},
        examples=[
            OpenApiExample(
                "By a kept rubric",
                {"slug": "mine", "name": "Mine", "rubric": "helpsteer2", "guidelines": "# How to rate"},
                request_only=True,
            )
        ],
    ),
)
class Projects(generics.ListCreateAPIView[Project]):
    """Lists the caller's projects that are not archived. Staff and managers may create projects, which they manage."""

    serializer_class = ProjectSerializer
    queryset = Project.objects.none()
    filterset_class = ProjectFilter

    def get_queryset(self) -> QuerySet[Project]:
        user = access.user_of(self.request)
        projects = _as_seen_by(user, Project.objects.visible_to(user))
        return projects if "archived" in self.request.query_params else projects.in_use()

    def paginate_queryset(self, queryset: Any) -> Any:
        page = super().paginate_queryset(queryset)
        figures.add_progress(page or [], now=database_now())
        return page

    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        user = access.user_of(request)
        if not access.may_create_projects(user):
            raise PermissionDenied("Only staff and managers can create projects.")
        data = validated(self.get_serializer(data=request.data))
        guidelines = data.pop("guidelines", "")
        project = project_settings.create(data, by=user, guidelines=guidelines)
        return Response(_as_answered(project, user), status=status.HTTP_201_CREATED)


class OneProject(generics.GenericAPIView[Project]):
    """One project, which its managers may change and delete."""

    serializer_class = ProjectSerializer
    queryset = Project.objects.none()

    @extend_schema(responses=ProjectByRole, description="As much of the project as the caller's role lets them see.")
    def get(self, request: Request, slug: str) -> Response:
        user = access.user_of(request)
        return Response(_as_answered(access.visible_project(user, slug), user))

    @extend_schema(
        description="Changes settings. The rubric stays once something has been rated. With `dry_run=1` nothing is "
        "changed, and the answer says what new numbers of the protocol would do to tasks and labels.",
        parameters=[OpenApiParameter("dry_run", bool, description="1: only say what the change would do")],
        responses={
            200: PolymorphicProxySerializer(
                component_name="ProjectOrPreview",
                serializers=[ProjectSerializer, ProtocolPreviewSerializer],
                resource_type_field_name=None,
            )
        },
    )
    def patch(self, request: Request, slug: str) -> Response:
        user, dry_run = access.user_of(request), flag(request.query_params, "dry_run")
        project = access.managed_project(user, slug)
        data = validated(self.get_serializer(project, data=request.data, partial=True))
        guidelines = data.pop("guidelines", "")
        if dry_run:
            preview = project_settings.preview(project, data)
            then = project_settings.candidate(project, data)
            return Response(ProtocolPreviewSerializer(preview, context={"then": then}).data)
        project_settings.change(project, data, guidelines=guidelines)
        return Response(_as_answered(project, user))

    @extend_schema(
        description="Deletes an archived project with all that is in it: 204 once it is gone, 202 where the light "
        "worker goes on with it. Without the slug as `confirm` it says what would go, and deletes nothing.",
        parameters=[OpenApiParameter("confirm", str, description="the project's slug")],
        responses={202: None, 204: None},
    )
    def delete(self, request: Request, slug: str) -> Response:
        project = access.managed_project(access.user_of(request), slug)
        try:
            is_deleted = deletion.delete(project, confirm=request.query_params.get("confirm", ""), now=database_now())
        except deletion.NotConfirmed as refused:
            raise deletion.NotConfirmed(f"{refused} Send it as ?confirm={project.slug}.") from refused
        return Response(status=status.HTTP_204_NO_CONTENT if is_deleted else status.HTTP_202_ACCEPTED)


class ArchiveProject(generics.GenericAPIView[Project]):
    """Archives a project or brings it back, for its managers.

    An archived project takes no claims, imports or runs, and appears in no list.
    """

    serializer_class = ProjectSerializer
    queryset = Project.objects.none()

    @extend_schema(request=None, description="Archives the project.")
    def post(self, request: Request, slug: str) -> Response:
        user = access.user_of(request)
        project = access.managed_project(user, slug)
        archive.archive(project, now=database_now())
        return Response(_as_answered(project, user))

    @extend_schema(description="Brings the project back.", responses=ProjectSerializer)
    def delete(self, request: Request, slug: str) -> Response:
        user = access.user_of(request)
        project = access.managed_project(user, slug)
        archive.restore(project)
        return Response(_as_answered(project, user))


def _as_seen_by(user: User, projects: ProjectQuerySet) -> ProjectQuerySet:
    return projects.as_seen_by(user).select_related("rubric").prefetch_related("rubric__attributes")


def _as_answered(project: Project, user: User) -> Any:
    seen = _as_seen_by(user, Project.objects.filter(pk=project.pk)).get()
    figures.add_progress([seen], now=database_now())
    return ProjectSerializer(seen).data
