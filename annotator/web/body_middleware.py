"""Bodies that are too large, or hold files where none is taken, are refused before a view reads a byte of them.

The server's parser knows the same limits; this holds under any other server as well.
"""

from collections.abc import Callable
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.core.files.uploadhandler import FileUploadHandler
from django.http import Http404, HttpRequest, HttpResponse
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from annotator import access
from annotator.models import User
from annotator.storage import disk_space
from annotator.web import body_limits


class BodyTooLarge(RequestDataTooBig):
    """A body of unknown length turned out to be larger than its address takes."""


class FileNotTaken(SuspiciousOperation):
    """A file was sent to an address that takes none."""


class BodyLimitMiddleware:
    """Refuses what is too large, and files where none is taken; answers the server's question about a large body."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        length = request.META.get("CONTENT_LENGTH") or "0"
        if length.isdecimal() and int(length) > body_limits.most_bytes(request.path):
            kind, content = body_limits.too_large(request.path)
            return HttpResponse(content, content_type=kind, status=413)
        if request.META.get("HTTP_TRANSFER_ENCODING", "").lower() == "chunked":
            request.META["wsgi.input"] = _Counted(request.META["wsgi.input"], body_limits.most_bytes(request.path))
        if not body_limits.takes_files(request.path):
            request.upload_handlers = [_NoFiles(request)]
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], _args: Any, kwargs: dict[str, Any]
    ) -> HttpResponse | None:
        return _may_be_sent(request, view, kwargs) if body_limits.WAITS in request.META else None


class _Counted:
    """A body of unknown length, as far as its limit."""

    def __init__(self, body: Any, most: int) -> None:
        self._body, self._left = body, most

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._body.read(size if size >= 0 else self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise BodyTooLarge("The body is larger than this address accepts.")
        return data


class _NoFiles(FileUploadHandler):
    """A form's fields may come as multipart; its files are refused before a byte of them is kept."""

    chunk_size = 2**16

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        raise FileNotTaken("This address accepts no file.")

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        return None

    def file_complete(self, file_size: int) -> None:
        return None


def _may_be_sent(request: HttpRequest, view: Callable[..., Any], kwargs: dict[str, Any]) -> HttpResponse:
    """Whether the sender may have so much read: whoever is logged in; a file, who may import it if there is room."""
    try:
        user = _sender(request, view)
        if user is not None and body_limits.takes_files(request.path):
            access.managed_project(user, kwargs["slug"])
            disk_space.require_room(extra=_will_fill(request))
    except disk_space.DiskNearlyFull as refused:
        return _refused(request, refused.status, str(refused), refused.code)
    except APIException as refused:
        return _refused(request, refused.status_code, str(refused.detail), str(refused.get_codes()))
    except PermissionDenied as refused:
        return _refused(request, 403, str(refused), "permission_denied")
    except Http404:
        return _refused(request, 404, "There is nothing here, or you do not have access to it.", "not_found")
    if user is None:
        most = f"{body_limits.STRANGERS_MOST:,} bytes"
        detail = f"Log in first. Without a login, at most {most} are read, and nothing of unknown length."
        return _refused(request, 401, detail, "not_authenticated")
    return HttpResponse(status=body_limits.GO_ON)


def _will_fill(request: HttpRequest) -> int:
    """Bytes of the disk that the body takes while it arrives; a form's file is copied out of the form."""
    copies = 2 if (request.content_type or "").startswith("multipart/") else 1
    return copies * (request.META[body_limits.WAITS] or body_limits.most_bytes(request.path))


def _sender(request: HttpRequest, view: Callable[..., Any]) -> User | None:
    """By the session, or by whatever the REST view takes for a proof. Nothing is changed, so no CSRF token is asked."""
    if isinstance(request.user, User):
        return request.user
    rest = getattr(view, "cls", None)
    user = Request(request, authenticators=rest().get_authenticators()).user if rest else None
    return user if isinstance(user, User) else None


def _refused(request: HttpRequest, status: int, detail: str, code: str) -> HttpResponse:
    kind, content = body_limits.refusal(request.path, detail=detail, code=code)
    return HttpResponse(content, content_type=kind, status=status)
