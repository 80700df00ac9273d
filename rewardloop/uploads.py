"""Files and rows on their way to the server: a form with one file, read while it is sent, as often as it is sent."""

import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import httpx

from rewardloop.calls import json_bytes

Source = str | Path | IO[bytes] | Iterable[Mapping[str, Any]]
"""What can be imported: a file by its path, an open one, rows, or hub:OWNER/NAME, a data set of the Hub."""
HUB = "hub:"
PIECE = 1 << 16
IN_MEMORY = 1 << 22
"""Bytes of rows that are kept in memory; more of them go to a temporary file."""


def hub_name(source: Source) -> str:
    """Returns the name of the data set of the Hub that a text names; empty for a file or rows."""
    return source.removeprefix(HUB) if isinstance(source, str) and source.startswith(HUB) else ""


@contextmanager
def opened(source: Source) -> Iterator[tuple[IO[bytes], str]]:
    """Yields a file that can be read again from its beginning, and its name.

    Rows become JSON lines. Only with a length that is known beforehand can every server and proxy take them.
    """
    if isinstance(source, str | Path):
        path = Path(source)
        with path.open("rb") as file:
            yield file, path.name
        return
    with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as kept:
        if hasattr(source, "read"):
            shutil.copyfileobj(cast("IO[bytes]", source), kept)
            name = Path(str(getattr(source, "name", "upload"))).name
        else:
            kept.writelines(json_bytes(dict(row)) + b"\n" for row in source)
            name = "rows.jsonl"
        yield kept, name


class FileForm(httpx.SyncByteStream):
    """A multipart form with one file. `told` hears the bytes of the file that have left."""

    def __init__(self, file: IO[bytes], name: str, *, told: Callable[[int], object]) -> None:
        self._file, self._told = file, told
        self.size = file.seek(0, 2)
        boundary = secrets.token_hex(16)
        self._head = (
            f"--{boundary}\r\n"
            f'Content-Disposition: form-data; name="file"; filename="{_quoted(name)}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        ).encode("utf-8", "replace")
        self._tail = f"\r\n--{boundary}--\r\n".encode()
        self.headers = {
            "Content-Type": f"multipart/form-data; boundary={boundary}",
            "Content-Length": str(len(self._head) + self.size + len(self._tail)),
        }

    def __iter__(self) -> Iterator[bytes]:
        self._file.seek(0)
        yield self._head
        while piece := self._file.read(PIECE):
            yield piece
            self._told(self._file.tell())
        yield self._tail


def _quoted(name: str) -> str:
    """Returns the name of a file as a browser writes it into a form (WHATWG, multipart/form-data)."""
    return name.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22")
