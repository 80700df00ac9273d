"""REST calls on invitations: managers make and revoke links, and those who are invited join by them."""

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator.accounts import logins
from annotator.api.fields import KnownFields, WholeNumberField, validated
from annotator.api.filters import InvitationFilter
from annotator.api.members import OwnMembershipSerializer
from annotator.api.model_serializers import ModelSerializer
from annotator.api.request_ids import RequestIdField, earlier_or_new
from annotator.api.scopes import WithinScopes
from annotator.infrastructure.db.clock import database_now
from annotator.managing import invitation_mails, invitations
from annotator.managing.invitations import DAYS, LONGEST_NAME, InvitationInput
from annotator.models import Invitation, Membership, Role, User
from annotator.reading import access


class InvitationSerializer(ModelSerializer[Invitation]):
    """An invitation, without its link, which only the answer to the call that makes it holds."""

    state = serializers.SerializerMethodField(help_text="open, used, expired or revoked")
    made_by = serializers.CharField(source="made_by.username", default=None, read_only=True)
    joined = serializers.SerializerMethodField(help_text="the accounts that have joined by it")

    class Meta:
        model = Invitation
        fields = [
            "id",
            "state",
            "role",
            "languages",
            "quota",
            "places",
            "taken",
            "meant_for",
            "email",
            "mailed_at",
            "made_by",
            "created_at",
            "expires_at",
            "joined",
        ]

    def get_state(self, invitation: Invitation) -> str:
        return str(invitations.state_of(invitation, now=database_now()))

    def get_joined(self, invitation: Invitation) -> list[str]:
        return [use.user.username for use in invitation.uses.all()]


class InvitationInputSerializer(KnownFields):
    """What a new invitation is to be. With `email` the link is sent, where the installation sends mails."""

    role = serializers.ChoiceField(choices=Role.choices, default=Role.ANNOTATOR)
    places = WholeNumberField(default=1, help_text="how many may join by the link")
    days = WholeNumberField(default=DAYS)
    languages = serializers.ListField(child=serializers.CharField(max_length=60), default=list, max_length=20)
    quota = WholeNumberField(default=None, allow_null=True)
    meant_for = serializers.CharField(default="", allow_blank=True, max_length=LONGEST_NAME)
    email = serializers.EmailField(default="", allow_blank=True)
    request_id = RequestIdField()


class NewInvitationSerializer(InvitationSerializer):
    """A new invitation with its link, which no other answer holds."""

    link = serializers.CharField()
    token = serializers.CharField(help_text="for invitations/accept/")

    class Meta(InvitationSerializer.Meta):
        fields = ["link", "token", *InvitationSerializer.Meta.fields]


class Invitations(generics.ListAPIView[Invitation]):
    """Lists a project's invitations, for its managers. A POST makes one, whose link is answered only this once.

    Sent again with its `request_id`, the call answers 200 with the invitation, without its link.
    """

    serializer_class = InvitationSerializer
    queryset = Invitation.objects.none()
    filterset_class = InvitationFilter

    def get_queryset(self) -> QuerySet[Invitation]:
        project = access.managed_project(access.user_of(self.request), self.kwargs["slug"])
        return invitations.newest_first(project).order_by("pk")

    @extend_schema(
        request=InvitationInputSerializer,
        responses={201: NewInvitationSerializer, 200: InvitationSerializer},
        examples=[OpenApiExample("Twenty people", {"role": "annotator", "places": 20, "days": 14}, request_only=True)],
    )
    def post(self, request: Request, slug: str) -> Response:
        user = access.user_of(request)
        project = access.managed_project(user, slug)
        data = validated(InvitationInputSerializer(data=request.data))
        secret, wish = "", InvitationInput(**data)

        def invite() -> Invitation:
            nonlocal secret
            row, secret = invitations.invite(project, wish, by=user, now=database_now())
            return row

        row = earlier_or_new(project.invitations.all(), wish.request_id, invite)
        if not secret:
            return Response(InvitationSerializer(row).data)
        link = request.build_absolute_uri(reverse("invitation", args=[secret]))
        invitation_mails.send([(row, link)])
        row.refresh_from_db(fields=["mailed_at"])
        body = {"link": link, "token": secret, **InvitationSerializer(row).data}
        return Response(body, status=status.HTTP_201_CREATED)


class OneInvitation(APIView):
    """Revokes an invitation, for the project's managers."""

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, pk: int) -> Response:
        project = access.managed_project(access.user_of(request), slug)
        invitations.revoke(get_object_or_404(project.invitations.select_related("project"), pk=pk), now=database_now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class AcceptanceSerializer(KnownFields):
    """The end of a link; with a name and a password for somebody who has no account yet."""

    token = serializers.CharField(max_length=200)
    username = serializers.CharField(max_length=150, required=False)
    password = serializers.CharField(max_length=1_000, required=False, trim_whitespace=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        user = self.context["user"]
        if isinstance(user, User) and ("username" in attrs or "password" in attrs):
            raise serializers.ValidationError("You have an account. Send the token of the invitation alone.")
        if not isinstance(user, User) and not ("username" in attrs and "password" in attrs):
            raise serializers.ValidationError("Send a username and a password for a new account, or log in first.")
        return attrs


class Acceptance(APIView):
    """Joins a project by an invitation: with the caller's account, or with one that this call makes."""

    permission_classes = [WithinScopes]

    @extend_schema(request=AcceptanceSerializer, responses=OwnMembershipSerializer)
    def post(self, request: Request) -> Response:
        data = validated(AcceptanceSerializer(data=request.data, context={"user": request.user}))
        now = database_now()
        with logins.limited_links(request):
            if isinstance(request.user, User):
                member = invitations.accept(data["token"], request.user, now=now)
            else:
                member = invitations.join(data["token"], username=data["username"], password=data["password"], now=now)
        row = Membership.objects.with_pseudonym().select_related("project").get(pk=member.pk)
        return Response(OwnMembershipSerializer(row).data)
