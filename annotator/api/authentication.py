"""One opaque, hashed token in three header forms: `Authorization: Token|Bearer ...` and `X-Api-Key`."""

from django.utils import timezone
from knox.crypto import hash_token
from knox.models import AuthToken
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from annotator.models import User
from annotator.statements import Columns, Statement

HOW = "Send it as 'Authorization: Token YOUR_TOKEN' or as 'X-Api-Key: YOUR_TOKEN'; get one from POST /api/v1/token/."


class TokenAuthentication(BaseAuthentication):
    """Knox's tokens under the names that people expect, found by their digest in one query.

    Knox's own class reads every token of the user at each call.
    """

    def authenticate(self, request: Request) -> tuple[User, AuthToken] | None:
        token = self.sent_token(request)
        if token is None:
            return None
        row = _stored(hash_token(token))
        if row is None or not row.user.is_active or (row.expiry and row.expiry <= timezone.now()):
            raise AuthenticationFailed(f"The token is unknown or has expired. {HOW}")
        return row.user, row

    def sent_token(self, request: Request) -> str | None:
        return _sent_token(request)

    def authenticate_header(self, request: Request) -> str:
        return "Token"


class TokenInAddress(TokenAuthentication):
    """The token in a header or, for callers that send none, as ?token= in the address."""

    def sent_token(self, request: Request) -> str | None:
        return super().sent_token(request) or request.query_params.get("token")


_TOKEN = Columns(AuthToken, "k", ("token_key", "created"))
_USER = Columns(
    User, "u", ("password", "first_name", "last_name", "email", "last_login", "date_joined", "layout", "keys")
)
_STORED = Statement(f"""
SELECT {_TOKEN}, {_USER} FROM knox_authtoken k JOIN annotator_user u ON u.id = k.user_id WHERE k.digest = %(digest)s
""")


def _stored(digest: str) -> AuthToken | None:
    row = _STORED.row(digest=digest)
    if row is None:
        return None
    token = _TOKEN.instance(row[: len(_TOKEN.names)])
    token.user = _USER.instance(row[len(_TOKEN.names) :])
    return token


def _sent_token(request: Request) -> str | None:
    if key := request.META.get("HTTP_X_API_KEY"):
        return str(key).strip()
    scheme, _, token = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    if scheme.lower() not in {"token", "bearer"}:
        return None
    if not token.strip() or " " in token.strip():
        raise AuthenticationFailed(f"The Authorization header holds no single token. {HOW}")
    return str(token.strip())
