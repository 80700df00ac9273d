"""Projects, members, tasks, annotations."""

from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django_filters import rest_framework as filters  # type: ignore[import-untyped]
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import generics, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator import access
from annotator.api.serializers import (
    AnnotationSerializer,
    AnswerSerializer,
    MemberSerializer,
    OwnMembershipSerializer,
    ProjectByRole,
    ProjectSerializer,
    TaskSerializer,
)
from annotator.db.clock import database_now
from annotator.models import Annotation, Membership, Project, Task, User
from annotator.models.project import ProjectQuerySet
from annotator.projects import archive, deletion, members, project_settings
from annotator.projects.pseudonyms import name_of
from annotator.review.blindness import tasks_held_by


class ProjectFilter(filters.FilterSet):  # type: ignore[misc]
    archived = filters.BooleanFilter("archived_at", "isnull", exclude=True, help_text="true: the archived ones instead")


@extend_schema_view(get=extend_schema(responses=ProjectByRole), post=extend_schema(responses={201: ProjectSerializer}))
class Projects(generics.ListCreateAPIView[Project]):
    """The caller's projects, but for archived ones; staff and managers may open new ones, and manage those."""

    serializer_class = ProjectSerializer
    queryset = Project.objects.none()
    filterset_class = ProjectFilter

    def get_queryset(self) -> QuerySet[Project]:
        seen = _as_seen_by(access.user_of(self.request), Project.objects.visible_to(access.user_of(self.request)))
        return seen if "archived" in self.request.query_params else seen.in_use()

    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        user = access.user_of(request)
        if not access.may_create_projects(user):
            raise PermissionDenied("Only staff and managers can create projects.")
        sent = self.get_serializer(data=request.data)
        sent.is_valid(raise_exception=True)
        guidelines = sent.validated_data.pop("guidelines", "")
        project = project_settings.create(sent.validated_data, by=user, guidelines=guidelines)
        return Response(_as_answered(project, user), status=status.HTTP_201_CREATED)


class OneProject(generics.GenericAPIView[Project]):
    """One project; changes and deletion by its managers."""

    serializer_class = ProjectSerializer
    queryset = Project.objects.none()

    @extend_schema(responses=ProjectByRole, description="As much of the project as the caller's role lets them see.")
    def get(self, request: Request, slug: str) -> Response:
        user = access.user_of(request)
        return Response(_as_answered(access.visible_project(user, slug), user))

    @extend_schema(description="Changes settings. The rubric stays once something has been rated.")
    def patch(self, request: Request, slug: str) -> Response:
        user = access.user_of(request)
        project = access.managed_project(user, slug)
        sent = self.get_serializer(project, data=request.data, partial=True)
        sent.is_valid(raise_exception=True)
        guidelines = sent.validated_data.pop("guidelines", "")
        project_settings.change(project, sent.validated_data, guidelines=guidelines)
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
            gone = deletion.delete(project, confirm=request.query_params.get("confirm", ""), now=database_now())
        except deletion.NotConfirmed as refused:
            raise deletion.NotConfirmed(f"{refused} Send it as ?confirm={project.slug}.") from refused
        return Response(status=status.HTTP_204_NO_CONTENT if gone else status.HTTP_202_ACCEPTED)


class Archive(generics.GenericAPIView[Project]):
    """An archived project takes no claims, imports or runs, and stands in no list; for its managers."""

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
    return projects.with_progress().as_seen_by(user).select_related("rubric")


def _as_answered(project: Project, user: User) -> Any:
    return ProjectSerializer(_as_seen_by(user, Project.objects.filter(pk=project.pk)).get()).data


class Members(generics.ListCreateAPIView[Membership]):
    """A project's people; managers add them, with a password for a new account.

    Who is to manage the project accepts that first, unless the account is made for them here.
    """

    serializer_class = MemberSerializer
    queryset = Membership.objects.none()

    def get_queryset(self) -> QuerySet[Membership]:
        project = access.managed_project(access.user_of(self.request), self.kwargs["slug"])
        return project.memberships.with_pseudonym().select_related("user").order_by("pk")

    @transaction.atomic
    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        user = access.user_of(request)
        project = access.managed_project(user, self.kwargs["slug"])
        sent = self.get_serializer(data=request.data)
        sent.is_valid(raise_exception=True)
        data = sent.validated_data
        member, created = members.admit(
            project, username=data["user"]["username"], role=data.get("role"), password=data.get("password"), by=user
        )
        members.limit(member, quota=data.get("quota", member.quota), languages=data.get("languages", member.languages))
        return Response(
            MemberSerializer(self.get_queryset().get(pk=member.pk)).data,
            status=status.HTTP_201_CREATED if created else status.HTTP_200_OK,
        )


class OneMember(APIView):
    """One of a project's people; for its managers."""

    @extend_schema(
        description="Ends the membership. Tasks that they hold go back, finished work stays. The last manager stays.",
        responses={204: None},
    )
    def delete(self, request: Request, slug: str, username: str) -> Response:
        project = access.managed_project(access.user_of(request), slug)
        members.dismiss(get_object_or_404(project.memberships.select_related("user"), user__username=username))
        return Response(status=status.HTTP_204_NO_CONTENT)


class Offer(APIView):
    """The role that the caller is offered in a project."""

    @extend_schema(
        description="Accepts the role that a manager has offered, or declines it.",
        request=AnswerSerializer,
        responses=OwnMembershipSerializer,
    )
    def post(self, request: Request, slug: str) -> Response:
        member = access.membership(access.user_of(request), slug)
        sent = AnswerSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        (members.accept if sent.validated_data["accept"] else members.decline)(member)
        shown = Membership.objects.with_pseudonym().select_related("project").get(pk=member.pk)
        return Response(OwnMembershipSerializer(shown).data)


class Tasks(generics.ListAPIView[Task]):
    """A project's tasks, for its managers and reviewers; those that measure annotators for managers alone."""

    serializer_class = TaskSerializer
    queryset = Task.objects.none()
    filterset_fields = {"state": ["exact"], "external_id": ["exact"]}

    def get_queryset(self) -> QuerySet[Task]:
        user = access.user_of(self.request)
        project = access.reviewed_project(user, self.kwargs["slug"])
        tasks = project.tasks.prefetch_related("responses")
        return tasks if access.manages(user, project) else tasks.exclude(state=Task.State.GOLD)


def _require_utc_year(moment: datetime) -> None:
    try:
        moment.astimezone(UTC)
    except OverflowError as beyond:
        raise ValidationError("The year of this time cannot be stored.") from beyond


class MomentFilter(filters.IsoDateTimeFilter):  # type: ignore[misc]
    """Compares in UTC: PostgreSQL refuses an offset of 16 hours or more."""

    def __init__(self, field: str, lookup: str) -> None:
        super().__init__(field, lookup, validators=[_require_utc_year])

    def filter(self, queryset: QuerySet[Annotation], value: datetime | None) -> QuerySet[Annotation]:
        annotations: QuerySet[Annotation] = super().filter(queryset, value and value.astimezone(UTC))
        return annotations


class AnnotationFilter(filters.FilterSet):  # type: ignore[misc]
    submitted_at__gte = MomentFilter("submitted_at", "gte")
    submitted_at__lt = MomentFilter("submitted_at", "lt")

    class Meta:
        model = Annotation
        fields = ["origin"]


class Annotations(generics.ListAPIView[Annotation]):
    """Current annotations, under pseudonyms, for managers and reviewers; without the tasks that the caller is rating.

    Reviewers do not see those of tasks that measure annotators.
    """

    serializer_class = AnnotationSerializer
    queryset = Annotation.objects.none()
    filterset_class = AnnotationFilter

    def get_queryset(self) -> QuerySet[Annotation]:
        user = access.user_of(self.request)
        project = access.reviewed_project(user, self.kwargs["slug"])
        annotations = Annotation.objects.current().for_project(project.pk)
        annotations = annotations.exclude(assignment__task__in=tasks_held_by(user))
        if not access.manages(user, project):
            annotations = annotations.exclude(assignment__task__state=Task.State.GOLD)
        named = annotations.annotate(pseudonym=name_of("assignment__annotator", "assignment__task__project"))
        return named.select_related("assignment__task").prefetch_related("ratings")
