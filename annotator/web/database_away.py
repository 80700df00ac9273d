"""While the database restarts, or cannot finish in time: 503 with when to come back, not a broken page.

The middleware answers for views, and `api.errors.server_error` for what breaks before or after them: Django shows no
middleware the errors of another one.
"""

import logging
from collections.abc import Callable

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from annotator.web.error_answers import error_answer

RETRY_AFTER_SECONDS = 2
_log = logging.getLogger(__name__)


class DatabaseAwayMiddleware:
    """Answers 503 for any view that loses its database."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return answer(request, exception)


def answer(request: HttpRequest, error: BaseException | None) -> HttpResponse | None:
    """The answer to an error which means that the database is away; None for any other error."""
    if not isinstance(error, OperationalError | InterfaceError):
        return None
    _log.error("The database did not answer %s %s: %s", request.method, request.path, error)
    detail = _("The database is not available right now. Everything you saved is kept. Try again in a few seconds.")
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
    return error_answer(request, detail, code="database_away", status=503, headers=headers)
