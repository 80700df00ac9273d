"""What REST answers to an error; infrastructure/web/error_answers.py makes its shape, {detail, code, errors}."""

import logging
import secrets
import sys
from typing import Any

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.template import loader
from django.views import defaults
from rest_framework.exceptions import APIException, NotAuthenticated, ValidationError
from rest_framework.response import Response
from rest_framework.views import exception_handler

from annotator.api.authentication import HOW
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.web import body_limits, middleware
from annotator.infrastructure.web.error_answers import Errors, error_answer, error_body, is_rest

_log = logging.getLogger(__name__)
WHOLE = "non_field_errors"
"""The place of what is wrong with a body as a whole."""


def answer_error(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception handler; None leaves the error to Django."""
    if isinstance(error, Refusal):
        body = error_body(str(error), code=error.code, errors=error.errors)
        return Response(body, status=error.status, headers=dict(error.headers))
    if isinstance(error, RequestDataTooBig):
        most = body_limits.most_bytes(context["request"].path)
        return _answer(413, f"The body is larger than {most:,} bytes. Send it in several calls.", "too_large")
    if isinstance(error, SuspiciousOperation):
        return _answer(400, str(error) or "The request is malformed.", "bad_request")
    answered = exception_handler(error, context)
    if answered is None:
        return None
    if isinstance(error, ValidationError):
        errors = _flattened(error.detail)
        place, texts = next(iter(errors.items()), ("", ["Invalid."]))
        detail = texts[0] if place in {"", WHOLE} else f"{place}: {texts[0]}"
        answered.data = error_body(detail, code="invalid", errors=errors)
    else:
        text, code = _told(error)
        answered.data = error_body(text, code=code)
    return answered


def _answer(status: int, detail: str, code: str) -> Response:
    return Response(error_body(detail, code=code), status=status)


def _told(error: Exception) -> tuple[str, str]:
    """Returns the sentence and the code of an error that the framework answers."""
    if isinstance(error, Http404):
        return "There is nothing here, or you do not have access to it.", "not_found"
    if isinstance(error, APIException):
        text = f"No token was sent. {HOW}" if isinstance(error, NotAuthenticated) else str(error.detail)
        return text, str(error.get_codes())
    return str(error) or "You are not allowed to do this.", "permission_denied"


def _flattened(detail: Any, place: str = "") -> Errors:
    """DRF's nested messages as lists by the dotted name of their field."""
    if isinstance(detail, dict):
        pairs = [(f"{place}.{key}" if place else str(key), value) for key, value in detail.items()]
    elif isinstance(detail, list) and any(isinstance(item, dict | list) for item in detail):
        pairs = [(f"{place}.{number}" if place else str(number), value) for number, value in enumerate(detail)]
    else:
        texts = detail if isinstance(detail, list) else [detail]
        return {place.removesuffix(f".{WHOLE}"): [str(text) for text in texts]} if texts else {}
    return {key: texts for name, value in pairs if value for key, texts in _flattened(value, name).items()}


# Where no view was reached: Django's own handlers, in JSON for our callers -----------------------------------


def not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if not is_rest(request.path):
        return defaults.page_not_found(request, exception)
    detail = "There is no such address. The addresses are listed at /api/v1/docs/."
    return error_answer(request, detail, code="not_found", status=404)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if not is_rest(request.path):
        return defaults.bad_request(request, exception)
    return error_answer(request, "The request is malformed.", code="bad_request", status=400)


def server_error(request: HttpRequest) -> HttpResponseBase:
    if away := middleware.database_away_answer(request, sys.exc_info()[1]):
        return away
    # Whoever meets the error can tell the operator the number, under which the log has it.
    digits = f"{secrets.randbelow(10**8):08}"
    number = f"{digits[:4]}-{digits[4:]}"
    _log.error("Error %s: %s %s", number, request.method, request.path, exc_info=sys.exc_info()[1])
    if not is_rest(request.path):
        return HttpResponse(loader.render_to_string("500.html", {"number": number}), status=500)
    detail = f"Something went wrong on the server. Its log has the error under the number {number}."
    return error_answer(request, detail, code="error", status=500)
