"""REST calls on the members of a project: role and limits, pause, test, offer, a link to a new password."""

from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import (
    extend_schema,
)
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator.api.fields import LARGEST, KnownFields, WholeNumberField, validated
from annotator.api.filters import MemberFilter
from annotator.api.model_serializers import ModelSerializer
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.limits import MOST_AHEAD
from annotator.managing import member_actions, members, password_links
from annotator.models import Membership, Project, Role
from annotator.reading import access


class MemberSerializer(KnownFields, ModelSerializer[Membership]):
    """A member of a project, as its managers see them. Rows have to come from `with_pseudonym()`."""

    username = serializers.CharField(source="user.username", max_length=150)
    pseudonym = serializers.CharField(read_only=True, help_text="in this project's exports, and nowhere else")
    role = serializers.ChoiceField(choices=Role.choices, required=False)
    offered_role = serializers.CharField(read_only=True, help_text="to be accepted by them; empty: none")
    accepted = serializers.SerializerMethodField(help_text="false: they have not answered the offer of a role yet")
    paused_at = serializers.DateTimeField(read_only=True, allow_null=True)
    pause_reason = serializers.CharField(read_only=True, help_text="gold or manager; empty: not paused")
    qualified_at = serializers.DateTimeField(read_only=True, allow_null=True)
    extra_tries = serializers.IntegerField(read_only=True)
    acknowledged_version = serializers.IntegerField(read_only=True, help_text="of the guidelines; 0: none")
    password = serializers.CharField(write_only=True, required=False, trim_whitespace=False)
    quota = WholeNumberField(required=False, allow_null=True, min_value=0, max_value=LARGEST)
    tasks_ahead = WholeNumberField(
        required=False,
        allow_null=True,
        min_value=0,
        max_value=MOST_AHEAD,
        help_text="that their browser holds ahead; null: as many as the project says",
    )
    languages = serializers.ListField(child=serializers.CharField(max_length=60), required=False, max_length=20)

    class Meta:
        model = Membership
        fields = [
            "username",
            "pseudonym",
            "role",
            "offered_role",
            "accepted",
            "password",
            "quota",
            "tasks_ahead",
            "languages",
            "paused_at",
            "pause_reason",
            "qualified_at",
            "extra_tries",
            "acknowledged_version",
            "created_at",
        ]

    def get_accepted(self, member: Membership) -> bool:
        return not member.offered_role


class OwnMembershipSerializer(ModelSerializer[Membership]):
    """The caller's own membership of a project. Rows have to come from `with_pseudonym()`."""

    project = serializers.CharField(source="project.slug")
    offered_role = serializers.CharField(read_only=True, help_text="to be accepted by them; empty: none")
    pseudonym = serializers.CharField(help_text="in this project's exports, and nowhere else")

    class Meta:
        model = Membership
        fields = ["project", "role", "offered_role", "pseudonym"]


class AnswerSerializer(KnownFields):
    """The answer to the offer of a role."""

    accept = serializers.BooleanField()


class MemberChangeSerializer(KnownFields):
    """What is to change about a member; what is absent stays."""

    role = serializers.ChoiceField(choices=Role.choices, required=False)
    quota = WholeNumberField(required=False, allow_null=True, min_value=0, max_value=LARGEST)
    tasks_ahead = WholeNumberField(required=False, allow_null=True, min_value=0, max_value=MOST_AHEAD)
    languages = serializers.ListField(child=serializers.CharField(max_length=60), required=False, max_length=20)


def member_of(project: Project, username: str) -> Membership:
    """Returns the member of this name, or raises 404."""
    rows = project.memberships.with_pseudonym().select_related("user", "project")
    return get_object_or_404(rows, user__username=username)


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
        members.limit(
            member,
            quota=data.get("quota", member.quota),
            languages=data.get("languages", member.languages),
            tasks_ahead=data.get("tasks_ahead", ...),
        )
        return Response(
            MemberSerializer(self.get_queryset().get(pk=member.pk)).data,
            status=status.HTTP_201_CREATED if created else status.HTTP_200_OK,
        )


class OneMember(APIView):
    """One member of a project, for its managers."""

    @extend_schema(responses=MemberSerializer)
    def get(self, request: Request, slug: str, username: str) -> Response:
        project = access.managed_project(access.user_of(request), slug)
        return Response(MemberSerializer(member_of(project, username)).data)

    @extend_schema(request=MemberChangeSerializer, responses=MemberSerializer)
    def patch(self, request: Request, slug: str, username: str) -> Response:
        user = access.user_of(request)
        member = member_of(access.managed_project(user, slug), username)
        data = validated(MemberChangeSerializer(data=request.data))
        members.change(
            member,
            role=data.get("role"),
            quota=data.get("quota", ...),
            languages=data.get("languages"),
            tasks_ahead=data.get("tasks_ahead", ...),
            by=user,
        )
        return Response(MemberSerializer(member_of(member.project, username)).data)

    @extend_schema(
        description="Ends the membership. Tasks that they hold go back, finished work stays. The last manager stays.",
        responses={204: None},
    )
    def delete(self, request: Request, slug: str, username: str) -> Response:
        members.dismiss(member_of(access.managed_project(access.user_of(request), slug), username))
        return Response(status=status.HTTP_204_NO_CONTENT)


class ActOnMember(APIView):
    """Does to a member what a manager's button does."""

    action = ""

    @classmethod
    def action_view(cls, action: str) -> Callable[..., Any]:
        """Returns the view of one action."""
        return cls.as_view(action=action)

    @extend_schema(request=None, responses=MemberSerializer)
    def post(self, request: Request, slug: str, username: str) -> Response:
        member = member_of(access.managed_project(access.user_of(request), slug), username)
        member_actions.act(self.action, [member], now=database_now())
        return Response(MemberSerializer(member_of(member.project, username)).data)


class PasswordLinkSerializer(serializers.Serializer[None]):
    link = serializers.CharField(help_text="where the member chooses a new password, once")
    expires_at = serializers.DateTimeField()


class MemberPasswordLink(APIView):
    """Makes a link by which a member who has forgotten their password chooses a new one."""

    @extend_schema(request=None, responses={201: PasswordLinkSerializer})
    def post(self, request: Request, slug: str, username: str) -> Response:
        user = access.user_of(request)
        project = access.managed_project(user, slug)
        account = member_of(project, username).user
        row, secret = password_links.make(account, by=user, project=project, now=database_now())
        link = request.build_absolute_uri(reverse("new-password", args=[secret]))
        return Response({"link": link, "expires_at": row.expires_at}, status=status.HTTP_201_CREATED)


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
