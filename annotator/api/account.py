"""Tokens and the caller's own account."""

from django.contrib.auth import authenticate
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import AnonRateThrottle
from rest_framework.views import APIView

from annotator import access, tokens
from annotator.api.serializers import MeSerializer, TokenRequestSerializer, TokenSerializer


class LoginThrottle(AnonRateThrottle):
    """Slows down whoever guesses passwords."""

    rate = "60/min"


class Token(APIView):
    """A new token for a name and password."""

    authentication_classes = ()
    permission_classes = [AllowAny]
    throttle_classes = [LoginThrottle]

    @extend_schema(request=TokenRequestSerializer, responses=TokenSerializer)
    def post(self, request: Request) -> Response:
        sent = TokenRequestSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        user = authenticate(request, **sent.validated_data)
        if user is None:
            raise AuthenticationFailed("The username or the password is wrong.")
        request.user = user  # who knows the password is who acts
        row, token = tokens.issue(user)
        return Response({"token": token, "expiry": row.expiry})

    def get_authenticate_header(self, request: Request) -> str:
        """Without one, a wrong password would answer 403 instead of 401."""
        return "Token"


class Me(APIView):
    """Who the token belongs to."""

    @extend_schema(responses=MeSerializer)
    def get(self, request: Request) -> Response:
        return Response(MeSerializer(access.user_of(request)).data)
