"""While the database restarts, or cannot finish in time: 503 with when to come back, not a broken page."""

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
        if not isinstance(exception, OperationalError | InterfaceError):
            return None
        _log.error("The database did not answer %s %s: %s", request.method, request.path, exception)
        answer = _answer(request)
        answer["Retry-After"] = str(RETRY_AFTER_SECONDS)
        return answer


def _answer(request: HttpRequest) -> HttpResponse:
    detail = _("The database is not to be had just now. What you had saved is kept: try again in a few seconds.")
    if request.path.startswith("/api/"):
        return JsonResponse({"detail": detail, "code": "database_away", "errors": {}}, status=503)
    return HttpResponse(loader.render_to_string("503.html", {"detail": detail}), status=503)
