"""Which scope of a token a call needs. A session of our own pages has them all."""

from typing import TYPE_CHECKING, Any

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from annotator.models import Scope, Token
from annotator.refusals import Refusal

if TYPE_CHECKING:  # the framework's views import this module, as the settings name it
    from rest_framework.views import APIView


class ScopeMissing(Refusal):
    """The token may not make this call, whatever its account may do."""

    status = 403
    code = "scope_missing"


class ForAnnotators:
    """A view of the calls by which tasks are rated: they need *annotate*."""


class ForScoring:
    """A view that has a model score: it needs *score*, which also fetches what was scored."""


class ForManagers:
    """A view of calls that change nothing and still take much work: they need *manage*."""


class WithinScopes(BasePermission):
    """The token has one of the scopes that the call asks for."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        token = request.auth
        needed = scopes_for(type(view), str(request.method))
        if isinstance(token, Token) and not needed & set(token.scopes):
            raise ScopeMissing(
                f"This call needs the scope {' or '.join(sorted(needed))}; the token that you sent has "
                f"{', '.join(token.scopes)}."
            )
        return True


def scopes_for(view: type[Any], method: str) -> set[str]:
    """The scopes of which one suffices: reading, rating and scoring have their own, every other change is managing."""
    own: set[str] = set()
    if issubclass(view, ForAnnotators):
        own = {Scope.ANNOTATE.value}
    elif issubclass(view, ForScoring):
        own = {Scope.SCORE.value}
    elif issubclass(view, ForManagers):
        return {Scope.MANAGE.value}
    if method in SAFE_METHODS:
        return {Scope.READ.value} | own
    return own or {Scope.MANAGE.value}
