"""The one shape of an error: `{"detail", "code", "errors"}` in JSON under `/api/`, a page everywhere else.

Everything that answers for a view calls this: DRF's handler, Django's handlers, the middleware, the server itself.
"""

import json
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import loader

REST = "/api/"
Errors = Mapping[str, list[str]]


def is_rest(path: str) -> bool:
    """Whether a program asks at this address, and wants JSON."""
    return path.startswith(REST)


def error_body(detail: str, *, code: str, errors: Errors | None = None) -> dict[str, Any]:
    """`detail` is a sentence for people, `code` a word for programs, `errors` lists messages by dotted field name."""
    return {"detail": detail, "code": code, "errors": dict(errors or {})}


def error_json(detail: str, *, code: str) -> bytes:
    """The body as the server sends it before there is a request of Django's."""
    return json.dumps(error_body(detail, code=code)).encode()


def error_answer(
    request: HttpRequest,
    detail: str,
    *,
    code: str,
    status: int,
    errors: Errors | None = None,
    headers: Mapping[str, str] | None = None,
) -> HttpResponse:
    """JSON or the page `<status>.html`, by the request's path.

    The page is rendered without the request: who asks would be read from a session, and the session's cookie or the
    database that holds it may be what is wrong.
    """
    if is_rest(request.path):
        return JsonResponse(error_body(detail, code=code, errors=errors), status=status, headers=headers)
    page = loader.render_to_string(f"{status}.html", {"detail": detail})
    return HttpResponse(page, status=status, headers=headers)
