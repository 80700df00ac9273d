"""Limits the calls of a token, and says in the headers of every answer how many are left.

The headers are those of draft-ietf-httpapi-ratelimit-headers.
"""

from typing import TYPE_CHECKING, Any

from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from annotator.accounts.call_limits import WINDOW_SECONDS, CallLimits, Standing, TooManyCalls
from annotator.models import Token, User

if TYPE_CHECKING:  # the framework's views import this module, as the settings name it
    from rest_framework.views import APIView

_limits = CallLimits()


class ByToken(BaseThrottle):
    """Counts calls by token, and by account for a session. Who has not logged in has the limits on logins alone."""

    def allow_request(self, request: Request, view: "APIView") -> bool:
        """Returns True and sets the headers. Raises TooManyCalls."""
        if (caller := _caller(request)) is None:
            return True
        try:
            standing = _limits.note(caller)
        except TooManyCalls as refused:
            refused.headers = {**refused.headers, **_headers(refused.standing)}
            raise
        if standing is not None:
            headers: dict[str, Any] = view.headers
            headers.update(_headers(standing))
        return True


def _caller(request: Request) -> str | None:
    if isinstance(request.auth, Token):
        return f"token {request.auth.pk}"
    return f"account {request.user.pk}" if isinstance(request.user, User) else None


def _headers(standing: Standing) -> dict[str, str]:
    return {
        "RateLimit-Policy": f'"calls";q={standing.most};w={WINDOW_SECONDS}',
        "RateLimit": f'"calls";r={standing.left};t={standing.seconds}',
    }
