"""Every error answers as {detail, code, errors}."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from rest_framework.exceptions import APIException, NotAuthenticated, ValidationError
from rest_framework.response import Response
from rest_framework.views import exception_handler

from annotator.api.authentication import HOW
from annotator.refusals import Refusal


def answer_error(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception handler; None leaves the error to Django."""
    if isinstance(error, Refusal):
        return _answer(error.status, str(error), error.code, dict(error.errors))
    answered = exception_handler(error, context)
    if answered is None:
        return None
    if isinstance(error, ValidationError):
        errors = _flattened(error.detail)
        first = next((f"{place}: {texts[0]}" if place else texts[0] for place, texts in errors.items()), "Invalid.")
        answered.data = {"detail": first, "code": "invalid", "errors": errors}
    else:
        answered.data = {"detail": _detail(error), "code": _code(error), "errors": {}}
    return answered


def _answer(status: int, detail: str, code: str, errors: dict[str, list[str]]) -> Response:
    return Response({"detail": detail, "code": code, "errors": errors}, status=status)


def _detail(error: Exception) -> str:
    if isinstance(error, Http404):
        return "There is nothing here, or it is not yours to see."
    if isinstance(error, NotAuthenticated):
        return f"No token was sent. {HOW}"
    if isinstance(error, APIException):
        return str(error.detail)
    return str(error) or "You may not do this."


def _code(error: Exception) -> str:
    if isinstance(error, Http404):
        return "not_found"
    if isinstance(error, PermissionDenied):
        return "permission_denied"
    return str(error.get_codes()) if isinstance(error, APIException) else "error"


def _flattened(detail: Any, place: str = "") -> dict[str, list[str]]:
    """Nested messages, keyed by the dotted place they belong to."""
    if isinstance(detail, dict):
        pairs = [(f"{place}.{key}" if place else str(key), value) for key, value in detail.items()]
    elif isinstance(detail, list) and any(isinstance(each, dict | list) for each in detail):
        pairs = [(f"{place}.{number}" if place else str(number), value) for number, value in enumerate(detail)]
    else:
        texts = detail if isinstance(detail, list) else [detail]
        return {place.removesuffix(".non_field_errors"): [str(text) for text in texts]} if texts else {}
    return {key: texts for name, value in pairs if value for key, texts in _flattened(value, name).items()}
