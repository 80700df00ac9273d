"""Projects, members, tasks, annotations."""

from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django_filters import rest_framework as filters  # type: ignore[import-untyped]
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from annotator import access
from annotator.api.serializers import (
    AnnotationSerializer,
    MemberSerializer,
    ProjectSerializer,
    TaskSerializer,
)
from annotator.models import Annotation, Membership, Project, Task
from annotator.projects import changing, members


class Projects(generics.ListCreateAPIView[Project]):
    """The caller's projects; staff and managers may open new ones, and manage those."""

    serializer_class = ProjectSerializer
    queryset = Project.objects.none()

    def get_queryset(self) -> QuerySet[Project]:
        return Project.objects.visible_to(access.user_of(self.request)).with_progress().select_related("rubric")

    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        if not access.may_create_projects(access.user_of(request)):
            raise PermissionDenied("Only staff and managers may open projects.")
        return super().create(request, *args, **kwargs)

    @transaction.atomic
    def perform_create(self, serializer: serializers.BaseSerializer[Project]) -> None:
        project = serializer.save()
        changing.opened(project, by=access.user_of(self.request))
        serializer.instance = with_progress(project)


class OneProject(generics.RetrieveUpdateDestroyAPIView[Project]):
    """One project; changes and deletion by its managers."""

    serializer_class = ProjectSerializer
    queryset = Project.objects.none()
    lookup_field = "slug"
    http_method_names = ["get", "patch", "delete", "options"]

    def get_object(self) -> Project:
        reach = access.visible_project if self.request.method == "GET" else access.managed_project
        return with_progress(reach(access.user_of(self.request), self.kwargs["slug"]))

    @transaction.atomic
    def perform_update(self, serializer: serializers.BaseSerializer[Project]) -> None:
        serializer.save()

    def perform_destroy(self, instance: Project) -> None:
        changing.delete(instance)


def with_progress(project: Project) -> Project:
    return Project.objects.with_progress().select_related("rubric").get(pk=project.pk)


class Members(generics.ListCreateAPIView[Membership]):
    """A project's people; managers add them, with a password for a new account."""

    serializer_class = MemberSerializer
    queryset = Membership.objects.none()

    def get_queryset(self) -> QuerySet[Membership]:
        project = access.managed_project(access.user_of(self.request), self.kwargs["slug"])
        return project.memberships.select_related("user").order_by("pk")

    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        project = access.managed_project(access.user_of(request), self.kwargs["slug"])
        sent = self.get_serializer(data=request.data)
        sent.is_valid(raise_exception=True)
        data = sent.validated_data
        member, created = members.admit(
            project, username=data["user"]["username"], role=data.get("role"), password=data.get("password")
        )
        members.limit(member, quota=data.get("quota", member.quota), languages=data.get("languages", member.languages))
        return Response(
            MemberSerializer(member).data, status=status.HTTP_201_CREATED if created else status.HTTP_200_OK
        )


class Tasks(generics.ListAPIView[Task]):
    """A project's tasks, for its managers and reviewers."""

    serializer_class = TaskSerializer
    queryset = Task.objects.none()
    filterset_fields = {"state": ["exact"], "external_id": ["exact"]}

    def get_queryset(self) -> QuerySet[Task]:
        project = access.reviewed_project(access.user_of(self.request), self.kwargs["slug"])
        return project.tasks.prefetch_related("responses")


def _require_utc_year(moment: datetime) -> None:
    try:
        moment.astimezone(UTC)
    except OverflowError as beyond:
        raise ValidationError("This time has no year that can be stored.") from beyond


class MomentFilter(filters.IsoDateTimeFilter):  # type: ignore[misc]
    """Compares in UTC: PostgreSQL refuses an offset of 16 hours or more."""

    def __init__(self, field: str, lookup: str) -> None:
        super().__init__(field, lookup, validators=[_require_utc_year])

    def filter(self, queryset: QuerySet[Annotation], value: datetime | None) -> QuerySet[Annotation]:
        found: QuerySet[Annotation] = super().filter(queryset, value and value.astimezone(UTC))
        return found


class AnnotationFilter(filters.FilterSet):  # type: ignore[misc]
    submitted_at__gte = MomentFilter("submitted_at", "gte")
    submitted_at__lt = MomentFilter("submitted_at", "lt")

    class Meta:
        model = Annotation
        fields = ["origin"]


class Annotations(generics.ListAPIView[Annotation]):
    """Current annotations, under pseudonyms, for managers and reviewers."""

    serializer_class = AnnotationSerializer
    queryset = Annotation.objects.none()
    filterset_class = AnnotationFilter

    def get_queryset(self) -> QuerySet[Annotation]:
        project = access.reviewed_project(access.user_of(self.request), self.kwargs["slug"])
        annotations = Annotation.objects.current().for_project(project.pk)
        return annotations.select_related("assignment__task", "assignment__annotator").prefetch_related("ratings")
