"""Sends a file of which a client may ask for a part, so that a download which broke off goes on where it stopped."""

import base64
import re
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from django.http import FileResponse, HttpRequest, HttpResponse, HttpResponseBase
from whitenoise.responders import SlicedFile

from annotator.infrastructure.storage import store

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


class Seekable(Protocol):
    """What can be sent in parts: a file, or something that is read like one."""

    def seek(self, place: int, /) -> int:
        """Goes to the byte with this number."""

    def read(self, size: int, /) -> bytes:
        """Returns some of the next bytes; none at the end alone."""

    def close(self) -> None:
        """Gives back what it holds."""


def ranged_file(request: HttpRequest, path: Path, *, content_type: str, name: str, sha256: str) -> HttpResponseBase:
    """Returns the file, or the part of it that the request asks for, as `ranged_content` does."""
    size = store.size_of(path)
    return ranged_content(
        request, lambda: store.opened(path), size=size, content_type=content_type, name=name, sha256=sha256
    )


def ranged_content(
    request: HttpRequest,
    opened: Callable[[], Seekable],
    *,
    size: int,
    content_type: str,
    name: str,
    sha256: str = "",
    tag: str = "",
) -> HttpResponseBase:
    """Returns a content, or the part for which the request's Range header asks (RFC 9110, section 14).

    `opened` opens it, and `name` is what browsers call it. Its hash is its ETag, so a part never continues another
    content. Where nobody has computed the hash, `tag` takes its place; another content must have another tag. A header
    that asks for several parts, or makes no sense, is ignored, and everything is sent.
    """
    tag = f'"{sha256 or tag}"'
    headers = {"Accept-Ranges": "bytes", "ETag": tag}
    if sha256:
        headers["Repr-Digest"] = f"sha-256=:{base64.b64encode(bytes.fromhex(sha256)).decode()}:"
    part = _part(request, size) if request.headers.get("If-Range", tag) == tag else None
    if part and part[0] >= size:
        return HttpResponse(status=416, headers={**headers, "Content-Range": f"bytes */{size}"})
    first, last = part or (0, size - 1)
    # Django closes the file with the answer.
    file = SlicedFile(opened(), first, last)
    answer = FileResponse(file, as_attachment=True, filename=name, content_type=content_type, headers=headers)
    answer["Content-Length"] = str(last - first + 1)
    if part:
        answer.status_code = 206
        answer["Content-Range"] = f"bytes {first}-{last}/{size}"
    return answer


def _part(request: HttpRequest, size: int) -> tuple[int, int] | None:
    """Returns the first and the last byte that are asked for; None for the whole file. The first may lie behind it."""
    asked = _RANGE.fullmatch(request.headers.get("Range", "").replace(" ", ""))
    if asked is None or asked.groups() == ("", ""):
        return None
    first, last = asked.groups()
    if not first:  # the last so many bytes
        return max(size - int(last), 0) if int(last) else size, size - 1
    if last and int(last) < int(first):
        return None
    return int(first), min(int(last) if last else size - 1, size - 1)
