"""Files on their way from the server: what has arrived is kept, a download goes on where it broke off, hashes agree.

A file is written beside its place as `NAME.part` and takes its place when it is whole. `NAME.part.etag` says which
content the part is of, so a later process goes on with it as well.
"""

import base64
import binascii
import hashlib
import re
import tarfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from time import sleep

import httpx

from rewardloop.answers import ExportJob, StoredFile
from rewardloop.connection import WRITTEN, Call, Connection, backoff, reason, require_done
from rewardloop.errors import DamagedFile, ServerAway
from rewardloop.progress import OnProgress, Progress


def exported(connection: Connection, call: Call, *, to: Path, on_progress: OnProgress, timeout: float | None) -> Path:
    """Has the server write a file, by the call that asks for it, and downloads it."""
    job = connection.one(ExportJob, call)
    job = connection.finished(
        ExportJob,
        Call("GET", f"{call.path}{job.id}/"),
        is_done=lambda now: now.state in WRITTEN,
        on_progress=on_progress
        and (lambda now: on_progress(Progress("writing", now.rows_done, now.rows_expected or 0))),
        timeout=timeout,
    )
    require_done(job, "The export")
    file = Call("GET", f"{call.path}{job.id}/file/")
    return saved(connection, file, to=to, on_progress=on_progress, sha256=job.sha256)


def saved(connection: Connection, call: Call, *, to: Path, on_progress: OnProgress, sha256: str = "") -> Path:
    """Downloads a file and returns its path.

    Raises:
        DamagedFile: its SHA-256 is not `sha256`, or not the one that comes with it.
        ServerAway: it broke off more often in a row than the connection's `retries`, without any progress.
    """
    part, tag = to.with_name(f"{to.name}.part"), to.with_name(f"{to.name}.part.etag")
    failures = 0
    while True:
        before = part.stat().st_size if part.exists() else 0
        try:
            with closing(_rest_of(connection, call, part=part, tag=tag)) as response:
                _append(response, part, on_progress=on_progress)
            break
        except httpx.TransportError as lost:
            failures = 0 if part.exists() and part.stat().st_size > before else failures + 1
            if failures > connection.retries:
                raise ServerAway(
                    f"The download broke off ({reason(lost)}). Start it again: it goes on there."
                ) from lost
            sleep(backoff(failures))
    expected = sha256 or _digest(response)
    if expected and _hash_of(part) != expected:
        part.unlink()
        tag.unlink(missing_ok=True)
        raise DamagedFile(
            f"{to.name} arrived damaged and was deleted: its SHA-256 is not {expected}. Download it again."
        )
    part.replace(to)
    tag.unlink(missing_ok=True)
    return to


def _rest_of(connection: Connection, call: Call, *, part: Path, tag: Path) -> httpx.Response:
    """Returns the open answer that brings the rest, with the file cut to what it follows."""
    # One byte less than is there: then a file that is whole has a rest as well, and its answer names the hash.
    start = part.stat().st_size - 1 if part.exists() and tag.exists() else 0
    # Packed on the way, the parts would be parts of something else.
    headers = {"Accept": "*/*", "Accept-Encoding": "identity"}
    if start > 0:
        rest = headers | {"Range": f"bytes={start}-", "If-Range": tag.read_text()}
        response = connection.answer(call, headers=rest, opens=True, accepted=(416,))
        if response.status_code == 206:
            with part.open("r+b") as file:
                file.truncate(start)
            return response
    if start <= 0 or response.status_code == 416:
        response = connection.answer(call, headers=headers, opens=True)
    # Another content, or all of it.
    part.unlink(missing_ok=True)
    if etag := response.headers.get("ETag"):
        tag.write_text(etag)
    else:
        tag.unlink(missing_ok=True)
    return response


def _append(response: httpx.Response, part: Path, *, on_progress: OnProgress) -> None:
    whole = re.search(r"/(\d+)$", response.headers.get("Content-Range", ""))
    total = int(whole[1] if whole else response.headers.get("Content-Length", 0))
    with part.open("ab") as file:
        for piece in response.iter_bytes():
            file.write(piece)
            if on_progress:
                on_progress(Progress("receiving", file.tell(), total))


def _digest(response: httpx.Response) -> str:
    """Returns the SHA-256 of the whole file, as the header Repr-Digest (RFC 9530) names it."""
    named = re.search(r"sha-256=:([A-Za-z0-9+/=]+):", response.headers.get("Repr-Digest", ""))
    try:
        return base64.b64decode(named[1], validate=True).hex() if named else ""
    except binascii.Error:
        return ""


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_members(archive: Path, files: Sequence[StoredFile]) -> None:
    """Compares the files in a tar file with the server's list. It unpacks nothing.

    Raises:
        DamagedFile: one of them is not on the list, or is another one; the archive is deleted.
    """
    listed = {file.path: file.sha256 for file in files}
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                content = tar.extractfile(member)
                # All are in one folder, whose name is not on the list.
                known = listed.get(member.name.partition("/")[2])
                if content and hashlib.file_digest(content, "sha256").hexdigest() != known:  # type: ignore[arg-type]
                    archive.unlink()
                    raise DamagedFile(
                        f"{member.name} arrived damaged, so {archive.name} was deleted. Download it again."
                    )
    except tarfile.TarError as broken:
        archive.unlink()
        raise DamagedFile(f"{archive.name} is no whole tar file and was deleted. Download it again.") from broken
