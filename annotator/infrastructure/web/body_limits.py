"""How large a request's body may be, by its address, and what a larger one is answered.

The server's parser asks before it keeps anything, the middleware (annotator/body_middleware.py) before a view reads.
"""

import re

from django.conf import settings

from annotator.infrastructure.limits import LARGEST_FORM
from annotator.infrastructure.web.error_answers import error_json, is_rest

STRANGERS_MOST = 64_000
"""Bytes that somebody may send who has not logged in: enough for every form that is open to strangers."""
WAITS = "rewardloop.body_waits"
"""In the environ of a request whose body the server has not read yet: it asks whether it should.

The value is the length that is announced, 0 where none is.
"""
GO_ON = 204
_IMPORTS = re.compile(r"/api/v1/projects/[^/]+/import(?:-jobs)?/|/projects/[^/]+/data/import/")
_RUBRIC = re.compile(r"/projects/[^/]+/rubric/")
_LISTS_OF_PEOPLE = re.compile(r"/projects/[^/]+/invitations/list/")
_EVALUATIONS = re.compile(r"(?:/api/v1)?/projects/[^/]+/evaluation-jobs/")
_RATINGS = re.compile(
    r"/assignments/\d+/(?:submit|revise|draft|segments)/|/qualification/\d+/(?:draft/)?|/projects/[^/]+/review/[^/]+/"
)


def takes_files(path: str) -> bool:
    return any(address.fullmatch(path) for address in (_IMPORTS, _EVALUATIONS, _RUBRIC, _LISTS_OF_PEOPLE))


def most_bytes(path: str) -> int:
    """The largest body that the address takes."""
    if _IMPORTS.fullmatch(path):
        return int(settings.IMPORT_MAX_BYTES)
    if _EVALUATIONS.fullmatch(path):
        return int(settings.EVALUATION_MAX_BYTES)
    if _RATINGS.fullmatch(path):
        return max(int(settings.FORM_MAX_BYTES), LARGEST_FORM)
    return int(settings.JSON_MAX_BYTES if is_rest(path) else settings.FORM_MAX_BYTES)


def refusal(path: str, *, detail: str, code: str) -> tuple[str, bytes]:
    """The content type and the body of a refusal: JSON under `/api/`, plain text on pages."""
    if is_rest(path):
        return "application/json", error_json(detail, code=code)
    return "text/plain; charset=utf-8", f"{detail}\n".encode()


def too_large(path: str) -> tuple[str, bytes]:
    most = most_bytes(path)
    return refusal(
        path, detail=f"The body is larger than {most:,} bytes, the most that this address accepts.", code="too_large"
    )
