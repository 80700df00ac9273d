"""Tokens and the caller's own account."""

from typing import Any

from django.contrib.auth import authenticate
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field
from rest_framework import generics, serializers, status
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator.accounts import tokens
from annotator.api.fields import KnownFields, WholeNumberField, validated
from annotator.api.members import OwnMembershipSerializer
from annotator.api.model_serializers import ModelSerializer
from annotator.models import Membership, Scope, User
from annotator.models import Token as StoredToken
from annotator.reading import access

LONGEST_NAME = 80


class MeSerializer(ModelSerializer[User]):
    memberships = serializers.SerializerMethodField()

    class Meta:
        model = User
        fields = ["username", "is_staff", "memberships"]

    @extend_schema_field(OwnMembershipSerializer(many=True))
    def get_memberships(self, user: User) -> Any:
        rows = Membership.objects.filter(user=user).in_use().with_pseudonym()
        rows = rows.select_related("project").order_by("project__slug")
        return OwnMembershipSerializer(rows, many=True).data


class TokenInputSerializer(KnownFields):
    """What a new token is to be: by default it has every scope and lasts the days that the installation sets."""

    name = serializers.CharField(required=False, max_length=LONGEST_NAME, allow_blank=True)
    scopes = serializers.ListField(child=serializers.ChoiceField(Scope.choices), required=False, allow_empty=False)
    days = WholeNumberField(required=False)


class TokenRequestSerializer(TokenInputSerializer):
    username = serializers.CharField()
    password = serializers.CharField(trim_whitespace=False)


class TokenSerializer(serializers.Serializer[Any]):
    token = serializers.CharField()
    expiry = serializers.DateTimeField(allow_null=True)


class StoredTokenSerializer(ModelSerializer[StoredToken]):
    """A stored token, without the secret itself; `begins` holds its first characters."""

    begins = serializers.SerializerMethodField()
    scopes = serializers.ListField(child=serializers.ChoiceField(Scope.choices))

    class Meta:
        model = StoredToken
        fields = ["id", "name", "scopes", "begins", "created", "expiry", "last_used_at"]

    def get_begins(self, token: StoredToken) -> str:
        return str(token.token_key)[:8]


class NewTokenSerializer(StoredTokenSerializer):
    """A new token. This is the only answer that holds the token itself."""

    token = serializers.CharField()

    class Meta(StoredTokenSerializer.Meta):
        fields = ["token", *StoredTokenSerializer.Meta.fields]


class TokenView(APIView):
    """Issues a token for a username and password. It has every scope and no name unless the body asks for others."""

    # No authentication: an expired token or session that is sent along must not refuse the login that replaces it.
    authentication_classes = ()
    permission_classes = [AllowAny]

    @extend_schema(
        request=TokenRequestSerializer,
        responses=TokenSerializer,
        examples=[OpenApiExample("By password", {"username": "manager", "password": "..."}, request_only=True)],
    )
    def post(self, request: Request) -> Response:
        wish = validated(TokenRequestSerializer(data=request.data))
        user = authenticate(request, username=wish.pop("username"), password=wish.pop("password"))
        if user is None:
            raise AuthenticationFailed("The username or the password is wrong.")
        # The audit reads the actor from the request.
        request.user = user
        row, token = tokens.issue(access.user_of(request), **wish)
        return Response({"token": token, "expiry": row.expiry})

    def get_authenticate_header(self, request: Request) -> str:
        """Returns the header that turns a wrong password's answer from 403 into 401."""
        return "Token"


class Tokens(generics.ListAPIView[StoredToken]):
    """Lists the caller's own tokens. A POST issues one, which is shown only this once."""

    serializer_class = StoredTokenSerializer
    queryset = StoredToken.objects.none()
    filterset_fields = ("name",)

    def get_queryset(self) -> QuerySet[StoredToken]:
        return tokens.living(access.user_of(self.request))

    @extend_schema(request=TokenInputSerializer, responses={201: NewTokenSerializer})
    def post(self, request: Request) -> Response:
        data = validated(TokenInputSerializer(data=request.data))
        # A token passes on no more than its own scopes and days; a session has no such limits.
        by = request.auth if isinstance(request.auth, StoredToken) else None
        row, token = tokens.issue(access.user_of(request), **data, by=by)
        return Response({"token": token, **StoredTokenSerializer(row).data}, status=status.HTTP_201_CREATED)


class OneToken(APIView):
    """Ends one of the caller's own tokens."""

    @extend_schema(responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        tokens.end(get_object_or_404(tokens.living(access.user_of(request)), pk=pk))
        return Response(status=status.HTTP_204_NO_CONTENT)


class Me(APIView):
    """Returns the account that the token belongs to, with its memberships."""

    @extend_schema(responses=MeSerializer)
    def get(self, request: Request) -> Response:
        return Response(MeSerializer(access.user_of(request)).data)
