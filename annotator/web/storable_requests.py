"""No address is asked with what cannot be stored: NUL in a path, a query, a form's field, cookie or header answers 400.

Django decodes queries and forms so that half character pairs do not arise; bodies of JSON have their own parser, and
files their own reader.
"""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import loader

from annotator.db.storable_text import UnstorableText, require_storable, require_storable_form

REST = "/api/"


class StorableRequestMiddleware:
    """Stands behind the one that protects forms, which has read the form already."""

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
        if request.method != "POST" or request.path.startswith(REST):
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
    detail = str(refused)
    if request.path.startswith(REST):
        answer = {"detail": detail, "code": refused.code, "errors": dict(refused.errors)}
        return JsonResponse(answer, status=refused.status)
    # Without the request: who asks would be read from a session whose cookie may be what is wrong.
    return HttpResponse(loader.render_to_string("400.html", {"detail": detail}), status=refused.status)
