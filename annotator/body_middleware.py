"""Refuses bodies that are too large, or that hold files where none are accepted, before a view reads any of them.

The server's own parser applies the same limits; the middleware applies them under any other server as well.
"""

from collections.abc import Callable
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.core.files.uploadhandler import FileUploadHandler
from django.http import Http404, HttpRequest, HttpResponse
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from annotator.infrastructure.storage import disk_space
from annotator.infrastructure.web import body_limits, lane_shares
from annotator.models import User
from annotator.reading import access


class BodyTooLarge(RequestDataTooBig):
    """A body of unknown length turned out to be larger than its address accepts."""


class FileNotTaken(SuspiciousOperation):
    """A file was sent to an address that accepts none."""


class BodyLimitMiddleware:
    """Refuses bodies that are too large, and unexpected files; tells the server whether to read a large body."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        length = request.META.get("CONTENT_LENGTH") or "0"
        if length.isdecimal() and int(length) > body_limits.most_bytes(request.path):
            kind, content = body_limits.too_large(request.path)
            return HttpResponse(content, content_type=kind, status=413)
        # A chunked body announces no length, so it is counted while it is read.
        if request.META.get("HTTP_TRANSFER_ENCODING", "").lower() == "chunked":
            request.META["wsgi.input"] = _Counted(request.META["wsgi.input"], body_limits.most_bytes(request.path))
        if not body_limits.takes_files(request.path):
            request.upload_handlers = [_NoFiles(request)]
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], _args: Any, kwargs: dict[str, Any]
    ) -> HttpResponse | None:
        # The server has kept the body back and asks with the headers alone. Who may send it depends on the view.
        return _may_be_sent(request, view, kwargs) if body_limits.WAITS in request.META else None


class _Counted:
    """A body of unknown length, which raises BodyTooLarge beyond its limit."""

    def __init__(self, body: Any, most: int) -> None:
        self._body, self._room = body, most

    def read(self, size: int = -1) -> bytes:
        # One byte more than the limit shows that the body is too large, without reading all of it.
        data: bytes = self._body.read(size if size >= 0 else self._room + 1)
        self._room -= len(data)
        if self._room < 0:
            raise BodyTooLarge("The body is larger than this address accepts.")
        return data


class _NoFiles(FileUploadHandler):
    """Accepts the fields of a multipart form, but refuses its files before a byte of them is kept."""

    chunk_size = 2**16

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        raise FileNotTaken("This address accepts no file.")

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        return None

    def file_complete(self, file_size: int) -> None:
        return None


def _may_be_sent(request: HttpRequest, view: Callable[..., Any], kwargs: dict[str, Any]) -> HttpResponse:
    """Answers whether the server should read the body. The sender has to be logged in.

    To send a file, they have to manage the project that it is for, and the disk has to have room for it.
    """
    try:
        user = _sender(request, view)
        if user is not None and body_limits.takes_files(request.path):
            access.managed_project(user, kwargs["slug"])
            lane_shares.require_share(request, user.pk)
            # The file of a form is written twice: with the form, and copied out of it.
            copies = 2 if (request.content_type or "").startswith("multipart/") else 1
            disk_space.require_room(
                extra=copies * (request.META[body_limits.WAITS] or body_limits.most_bytes(request.path))
            )
    except (disk_space.DiskNearlyFull, lane_shares.ShareUsedUp) as refusal:
        return _refusal(request, refusal.status, str(refusal), refusal.code)
    except APIException as refusal:
        return _refusal(request, refusal.status_code, str(refusal.detail), str(refusal.get_codes()))
    except PermissionDenied as refusal:
        return _refusal(request, 403, str(refusal), "permission_denied")
    except Http404:
        return _refusal(request, 404, "There is nothing here, or you do not have access to it.", "not_found")
    if user is None:
        most = f"{body_limits.STRANGERS_MOST:,} bytes"
        detail = f"Log in first. Without a login, at most {most} are read, and nothing of unknown length."
        return _refusal(request, 401, detail, "not_authenticated")
    return HttpResponse(status=body_limits.GO_ON)


def _sender(request: HttpRequest, view: Callable[..., Any]) -> User | None:
    """Returns the user of the session, or else the one whom the REST view's authentication finds."""
    # This answer changes nothing, so no CSRF token is needed for it; the view checks the token of the request itself.
    if isinstance(request.user, User):
        return request.user
    rest = getattr(view, "cls", None)
    user = Request(request, authenticators=rest().get_authenticators()).user if rest else None
    return user if isinstance(user, User) else None


def _refusal(request: HttpRequest, status: int, detail: str, code: str) -> HttpResponse:
    kind, content = body_limits.refusal(request.path, detail=detail, code=code)
    return HttpResponse(content, content_type=kind, status=status)
