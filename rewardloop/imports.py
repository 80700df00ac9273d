"""Files and rows on their way to the server, until they are tasks.

A file goes in a form, which is read while it is sent, as often as it is sent.
"""

import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import IO, Any, cast

import httpx

from rewardloop.answers import ImportJob, ImportResult, RefusedRow
from rewardloop.connection import Call, Connection, json_bytes, require_done
from rewardloop.progress import OnProgress, Progress

Source = str | Path | IO[bytes] | Iterable[Mapping[str, Any]]
"""What can be imported: a file by its path, an open one, rows, or hub:OWNER/NAME, a data set of the Hub."""
HUB = "hub:"
PIECE = 1 << 16
IN_MEMORY = 1 << 22
"""Bytes of rows that are kept in memory; more of them go to a temporary file."""
ENDED = ("done", "failed", "cancelled")


def imported(
    connection: Connection,
    jobs: str,
    source: Source,
    *,
    query: Mapping[str, Any],
    on_progress: OnProgress,
    timeout: float | None,
) -> ImportResult:
    """Sends a file to the path of a project's import jobs, and waits until its rows are tasks."""
    with _opened(source) as (file, name):
        form = FileForm(file, name, on_progress=on_progress)
        # Sent twice, its rows are found to be there already.
        job = connection.one(ImportJob, Call("POST", jobs, query, stream=form, headers=form.headers))
        return _result_of(connection, jobs, job, name=name, on_progress=on_progress, timeout=timeout)


def imported_from_hub(
    connection: Connection,
    jobs: str,
    data_set: str,
    *,
    query: Mapping[str, Any],
    on_progress: OnProgress,
    timeout: float | None,
) -> ImportResult:
    """Has the server fetch a data set of the Hub, and waits until the rows of all its files are tasks."""
    ends = None if timeout is None else monotonic() + timeout
    job = connection.one(ImportJob, Call("POST", jobs, {"hub": data_set, **query}))
    files = [_result_of(connection, jobs, job, on_progress=on_progress, timeout=timeout)]
    # The jobs of its further files are there as soon as the first one has its file, and have its time.
    since = Call("GET", jobs, {"since": job.created_at})
    for other in list(connection.pages(ImportJob, since)) if job.created_at else []:
        if other.created_at == job.created_at and other.hub and other.id != job.id:
            left = None if ends is None else max(ends - monotonic(), 0.0)
            files.append(_result_of(connection, jobs, other, on_progress=on_progress, timeout=left))
    return files[0] if len(files) == 1 else _sum_of(files, name=data_set)


def _result_of(
    connection: Connection,
    jobs: str,
    job: ImportJob,
    *,
    name: str = "",
    on_progress: OnProgress,
    timeout: float | None,
) -> ImportResult:
    """Returns what an import has done when it has ended. Its name is that of its file on the Hub if it has no other."""
    job = connection.finished(
        ImportJob,
        Call("GET", f"{jobs}{job.id}/"),
        is_done=lambda now: now.state in ENDED,
        on_progress=on_progress and (lambda now: on_progress(Progress("importing", now.bytes_read, now.file_bytes))),
        timeout=timeout,
    )
    name = name or job.hub
    require_done(job, f"The import of {name}")
    listed = job.rejected or job.ratings_left_out
    return ImportResult(
        created=job.created,
        existing=job.existing,
        rejected=job.rejected,
        ratings_added=job.ratings_added,
        ratings_left_out=job.ratings_left_out,
        refused=connection.listed(RefusedRow, Call("GET", f"{jobs}{job.id}/errors/")) if listed else (),
        notes=job.notes,
        import_id=job.import_id,
        dry_run=job.dry_run,
        name=name,
        raw=job.raw,
    )


def _sum_of(files: Sequence[ImportResult], *, name: str) -> ImportResult:
    return ImportResult(
        created=sum(file.created for file in files),
        existing=sum(file.existing for file in files),
        rejected=sum(file.rejected for file in files),
        ratings_added=sum(file.ratings_added for file in files),
        ratings_left_out=sum(file.ratings_left_out for file in files),
        dry_run=files[0].dry_run,
        name=name,
        files=tuple(files),
    )


@contextmanager
def _opened(source: Source) -> Iterator[tuple[IO[bytes], str]]:
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
    """A multipart form with one file. `on_progress` hears the bytes of the file that have left."""

    def __init__(self, file: IO[bytes], name: str, *, on_progress: OnProgress) -> None:
        self._file, self._on_progress = file, on_progress
        self._size = file.seek(0, 2)
        boundary = secrets.token_hex(16)
        # A name is written as a browser writes it into a form (WHATWG, multipart/form-data).
        quoted = name.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22")
        self._head = (
            f"--{boundary}\r\n"
            f'Content-Disposition: form-data; name="file"; filename="{quoted}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        ).encode("utf-8", "replace")
        self._tail = f"\r\n--{boundary}--\r\n".encode()
        self.headers = {
            "Content-Type": f"multipart/form-data; boundary={boundary}",
            "Content-Length": str(len(self._head) + self._size + len(self._tail)),
        }

    def __iter__(self) -> Iterator[bytes]:
        self._file.seek(0)
        yield self._head
        while piece := self._file.read(PIECE):
            yield piece
            if self._on_progress:
                self._on_progress(Progress("sending", self._file.tell(), self._size))
        yield self._tail
