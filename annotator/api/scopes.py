"""Checks that a token has a scope that the call needs. A session of our own pages has them all."""

from typing import TYPE_CHECKING, Any

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from annotator.infrastructure.refusals import Refusal
from annotator.models import Scope, Token

if TYPE_CHECKING:  # the framework's views import this module, as the settings name it
    from rest_framework.views import APIView


class ForAnnotators:
    """Marks views of the calls by which tasks are rated: they need *annotate*."""


class ForScoring:
    """Marks views that have a model score texts: they need *score*, which may also fetch what was scored."""


class ForReaders:
    """Marks views that change nothing but the caller's own copies of what *read* lets them read: they need *read*."""


class ForManagers:
    """Marks views of calls that change nothing but take much work: they need *manage*."""


class WithinScopes(BasePermission):
    """Requires that the token has one of the scopes that the call asks for. Raises Refusal."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        token = request.auth
        needed = scopes_for(type(view), str(request.method))
        if isinstance(token, Token) and not needed & set(token.scopes):
            raise Refusal(
                f"This call needs the scope {' or '.join(sorted(needed))}; the token that you sent has "
                f"{', '.join(token.scopes)}.",
                code="scope_missing",
                status=403,
            )
        return True


def scopes_for(view: type[Any], method: str) -> set[str]:
    """Returns the scopes of which one is enough for the call.

    Reading, rating and scoring have scopes of their own; every other change needs *manage*.
    """
    own: set[str] = set()
    if issubclass(view, ForAnnotators):
        own = {Scope.ANNOTATE.value}
    elif issubclass(view, ForScoring):
        own = {Scope.SCORE.value}
    elif issubclass(view, ForManagers):
        return {Scope.MANAGE.value}
    elif issubclass(view, ForReaders):
        return {Scope.READ.value}
    if method in SAFE_METHODS:
        return {Scope.READ.value} | own
    return own or {Scope.MANAGE.value}
