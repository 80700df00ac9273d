"""While the database restarts, or cannot finish in time: 503 with when to come back, not a broken page.

The middleware answers for views, and `api.errors.server_error` for what breaks before or after them: Django shows no
middleware the errors of another one.
"""

import logging
from collections.abc import Callable

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import loader
from django.utils.translation import gettext as _

RETRY_AFTER_SECONDS = 2
_log = logging.getLogger(__name__)


class DatabaseAwayMiddleware:
    """Answers for any view whose database went away beneath it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return answer(request, exception)


def answer(request: HttpRequest, error: BaseException | None) -> HttpResponse | None:
    """What to say when the error means that the database is away; None for any other error."""
    if not isinstance(error, OperationalError | InterfaceError):
        return None
    _log.error("The database did not answer %s %s: %s", request.method, request.path, error)
    detail = _("The database is not available right now. Everything you saved is kept. Try again in a few seconds.")
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
    if request.path.startswith("/api/"):
        body = {"detail": detail, "code": "database_away", "errors": {}}
        return JsonResponse(body, status=503, headers=headers)
    return HttpResponse(loader.render_to_string("503.html", {"detail": detail}), status=503, headers=headers)
