"""Authentication by an opaque token, stored hashed: `Authorization: Token|Bearer ...` or `X-Api-Key`."""

from base64 import b64decode

from django.utils import timezone
from knox.crypto import hash_token
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from annotator.accounts import tokens
from annotator.infrastructure.db.statements import Columns, Statement
from annotator.models import Token, User

HOW = "Send it as 'Authorization: Token YOUR_TOKEN' or as 'X-Api-Key: YOUR_TOKEN'; get one from POST /api/v1/token/."


# Without the columns that only pages read: every call of REST reads one of these rows.
_TOKEN = Columns(Token, "k", ("token_key", "created", "name"))
_PAGES_ALONE = ("password", "must_change_password", "made_by_demo", "last_login", "date_joined", "layout", "keys")
_USER = Columns(User, "u", ("first_name", "last_name", "email", *_PAGES_ALONE))
_STORED = Statement(f"""
SELECT {_TOKEN}, {_USER} FROM annotator_token k JOIN annotator_user u ON u.id = k.user_id WHERE k.digest = %(digest)s
""")


class TokenAuthentication(BaseAuthentication):
    """Accepts Knox's tokens in the headers that people expect, and finds them by their digest in one query.

    Knox's own class looks for the first characters of the token, and then compares digests one by one.
    """

    def authenticate(self, request: Request) -> tuple[User, Token] | None:
        token = self.sent_token(request)
        if token is None:
            return None
        # What is looked up is the digest: how long the search takes says nothing about the token.
        row = _STORED.row(digest=hash_token(token))
        stored = row and _TOKEN.instance(row[: len(_TOKEN.names)])
        user = row and _USER.instance(row[len(_TOKEN.names) :])
        if not stored or not user or not user.is_active or (stored.expiry and stored.expiry <= timezone.now()):
            raise AuthenticationFailed(f"The token is unknown or has expired. {HOW}")
        stored.user = user
        tokens.note_use(stored)
        return user, stored

    def sent_token(self, request: Request) -> str | None:
        """Returns the token in the request's headers, or None. Raises AuthenticationFailed for a malformed header."""
        if key := request.META.get("HTTP_X_API_KEY"):
            return str(key).strip()
        scheme, _, token = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() not in {"token", "bearer"}:
            return None
        if not token.strip() or " " in token.strip():
            raise AuthenticationFailed(f"The Authorization header does not contain a single token. {HOW}")
        return str(token.strip())

    def authenticate_header(self, request: Request) -> str:
        return "Token"


class TokenAsPassword(TokenAuthentication):
    """Also accepts the token as the password of HTTP Basic, for callers that can only be given an address.

    Clients make that header from `http://token:SECRET@host/` and keep the secret out of the request line. The username
    is ignored.
    """

    def sent_token(self, request: Request) -> str | None:
        if "token" in request.query_params:
            raise AuthenticationFailed(
                "A token in the address ends up in logs. Write it before the host, like https://token:SECRET@host/, "
                "and revoke the one that you have sent."
            )
        if token := super().sent_token(request):
            return token
        scheme, _, credentials = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() != "basic":
            return None
        try:
            _, _, password = b64decode(credentials, validate=True).decode().partition(":")
        except ValueError as broken:
            raise AuthenticationFailed(f"The Authorization header cannot be read. {HOW}") from broken
        return password
