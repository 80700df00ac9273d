"""Refuses with 400 what PostgreSQL cannot store: NUL in a path, a query, a form field, a cookie or a header.

Lone surrogates cannot arise here, as Django decodes queries and forms. Bodies of JSON are checked by their parser
(api/parsing.py), imported files by their reader (importing/field_checks.py).
"""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse

from annotator.db.storable_text import UnstorableText, require_storable, require_storable_form
from annotator.web.error_answers import error_answer, is_rest


class StorableRequestMiddleware:
    """Comes after the middleware that checks CSRF tokens, which has read the form already."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        try:
            _check_head(request)
        except UnstorableText as refused:
            return _answer(request, refused)
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., HttpResponse], args: Any, kwargs: Any
    ) -> HttpResponse | None:
        if request.method != "POST" or is_rest(request.path):
            return None
        try:
            require_storable_form(dict(request.POST.lists()))
        except UnstorableText as refused:
            return _answer(request, refused)
        return None


def _check_head(request: HttpRequest) -> None:
    require_storable(request.path_info, "address")
    if "%00" in request.META.get("QUERY_STRING", "") or "\0" in request.META.get("QUERY_STRING", ""):
        require_storable_form(dict(request.GET.lists()))
    for name, value in request.COOKIES.items():
        require_storable(name + value, "cookie")
    for name, value in request.META.items():
        if name.startswith("HTTP_") and "\0" in value:
            require_storable(value, name.removeprefix("HTTP_").replace("_", "-").lower())


def _answer(request: HttpRequest, refused: UnstorableText) -> HttpResponse:
    return error_answer(request, str(refused), code=refused.code, status=refused.status, errors=refused.errors)
