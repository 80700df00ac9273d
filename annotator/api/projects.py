"""REST calls on projects, their members, tasks and annotations."""

from contextlib import nullcontext
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django_filters import rest_framework as filters  # type: ignore[import-untyped]
from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    PolymorphicProxySerializer,
    extend_schema,
    extend_schema_view,
)
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator import access
from annotator.api.fields import validated
from annotator.api.filters import AnnotationFilter, MemberFilter, SinceFilter
from annotator.api.members import AnswerSerializer, MemberSerializer
from annotator.api.serializers import (
    AnnotationSerializer,
    OwnMembershipSerializer,
    ProjectByRole,
    ProjectSerializer,
    ProtocolPreviewSerializer,
    TaskSerializer,
)
from annotator.db.clock import database_now
from annotator.forms.data import TasksForm
from annotator.models import Annotation, Membership, Project, Task, User
from annotator.models.project import ProjectQuerySet
from annotator.projects import archive, deletion, figures, members, project_settings
from annotator.projects.pseudonyms import name_of
from annotator.reading.blindness import tasks_held_by
from annotator.search.criteria import matching, searching
from annotator.web.query_parameters import flag


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


class Archive(generics.GenericAPIView[Project]):
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


class Members(generics.ListCreateAPIView[Membership]):
    """Lists a project's members. Managers add members, with a password for a new account.

    A new manager has to accept the role first, unless this call creates the account.
    """

    serializer_class = MemberSerializer
    queryset = Membership.objects.none()
    filterset_class = MemberFilter

    def get_queryset(self) -> QuerySet[Membership]:
        project = access.managed_project(access.user_of(self.request), self.kwargs["slug"])
        return project.memberships.with_pseudonym().select_related("user").order_by("pk")

    # Nobody is admitted without the limits that came with them.
    @transaction.atomic
    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        user = access.user_of(request)
        project = access.managed_project(user, self.kwargs["slug"])
        data = validated(self.get_serializer(data=request.data))
        member, created = members.admit(
            project, username=data["user"]["username"], role=data.get("role"), password=data.get("password"), by=user
        )
        members.limit(member, quota=data.get("quota", member.quota), languages=data.get("languages", member.languages))
        return Response(
            MemberSerializer(self.get_queryset().get(pk=member.pk)).data,
            status=status.HTTP_201_CREATED if created else status.HTTP_200_OK,
        )


class Offer(APIView):
    """The role that the caller is offered in a project."""

    @extend_schema(
        description="Accepts the role that a manager has offered, or declines it.",
        request=AnswerSerializer,
        responses=OwnMembershipSerializer,
    )
    def post(self, request: Request, slug: str) -> Response:
        member = access.membership(access.user_of(request), slug)
        data = validated(AnswerSerializer(data=request.data))
        (members.accept if data["accept"] else members.decline)(member)
        row = Membership.objects.with_pseudonym().select_related("project").get(pk=member.pk)
        return Response(OwnMembershipSerializer(row).data)


_SEARCH = {
    "q": 'words, "quoted words" and -words to leave out, or the task\'s id',
    "label": "labelled, dropped or none",
    "spread": "at least so many levels between two raters",
    "language": "its code or English name",
    "source": "the id of an import",
    "model": "of a response; for managers",
    "reward_from": "by the champion; for managers",
    "reward_to": "by the champion; for managers",
}


@extend_schema(parameters=[OpenApiParameter(name, description=meaning) for name, meaning in _SEARCH.items()])
class Tasks(generics.ListAPIView[Task]):
    """Lists a project's tasks, for its managers and reviewers. Only managers see tasks that measure annotators.

    The filters are those of the page. With one of them, tasks that measure annotators, and tasks that the caller is
    rating at the moment, are left out, as they are there.
    """

    serializer_class = TaskSerializer
    queryset = Task.objects.none()
    filterset_fields = {"state": ["exact"], "external_id": ["exact"]}
    searches = tuple(_SEARCH)

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        with searching() if self._search() else nullcontext():
            return super().list(request, *args, **kwargs)

    def get_queryset(self) -> QuerySet[Task]:
        user = access.user_of(self.request)
        project = access.reviewed_project(user, self.kwargs["slug"])
        manages = access.manages(user, project)
        tasks: QuerySet[Task] = project.tasks.all() if manages else project.tasks.exclude(state=Task.State.GOLD)
        if search := self._search():
            form = TasksForm(project, search, manages=manages)
            if not form.is_valid():
                errors = {name: [str(message) for message in messages] for name, messages in form.errors.items()}
                raise serializers.ValidationError(errors)
            if unknown := search.keys() - form.fields.keys():
                raise serializers.ValidationError({name: ["Only managers can filter by this."] for name in unknown})
            tasks = matching(project, form.criteria(), reader=user).tasks
        return tasks.prefetch_related("responses")

    def _search(self) -> dict[str, str]:
        return {name: value for name in _SEARCH if (value := self.request.query_params.get(name))}


class Annotations(generics.ListAPIView[Annotation]):
    """Lists current annotations under pseudonyms, for managers and reviewers.

    Those of tasks that the caller is rating are left out. Reviewers do not see those of tasks that measure annotators.
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
