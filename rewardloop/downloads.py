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
from pathlib import Path

import httpx

from rewardloop.answers import StoredFile
from rewardloop.calls import Call
from rewardloop.errors import DamagedFile, ServerAway
from rewardloop.exchanges import Pause, Save, Server, Talk, answered, backoff, reason
from rewardloop.progress import Advance, Told


def saved(server: Server, call: Call[httpx.Response], *, to: Path, told: Told, sha256: str = "") -> Talk[Path]:
    """Downloads a file and returns its path.

    Raises:
        DamagedFile: its SHA-256 is not `sha256`, or not the one that comes with it.
        ServerAway: it broke off more often in a row than the server's `retries`, without any progress.
    """
    part, tag = to.with_name(f"{to.name}.part"), to.with_name(f"{to.name}.part.etag")
    failures = 0
    while True:
        before = part.stat().st_size if part.exists() else 0
        try:
            response = yield from _continued(server, call, part=part, tag=tag)
            yield from _written(response, part, told=told)
            break
        except httpx.TransportError as lost:
            failures = 0 if part.exists() and part.stat().st_size > before else failures + 1
            if failures > server.retries:
                raise ServerAway(
                    f"The download broke off ({reason(lost)}). Start it again: it goes on there."
                ) from lost
            yield Pause(backoff(failures))
    expected = sha256 or _digest(response)
    if expected and hash_of(part) != expected:
        part.unlink()
        tag.unlink(missing_ok=True)
        raise DamagedFile(
            f"{to.name} arrived damaged and was deleted: its SHA-256 is not {expected}. Download it again."
        )
    part.replace(to)
    tag.unlink(missing_ok=True)
    return to


def _continued(server: Server, call: Call[httpx.Response], *, part: Path, tag: Path) -> Talk[httpx.Response]:
    """Returns the open answer that brings the rest, with the file cut to what it follows."""
    # One byte less than is there: then a file that is whole has a rest as well, and its answer names the hash.
    start = part.stat().st_size - 1 if part.exists() and tag.exists() else 0
    # Packed on the way, the parts would be parts of something else.
    headers = {"Accept": "*/*", "Accept-Encoding": "identity"}
    if start > 0:
        rest = headers | {"Range": f"bytes={start}-", "If-Range": tag.read_text()}
        response = yield from answered(server, call, headers=rest, opens=True, accepted=(416,))
        if response.status_code == 206:
            with part.open("r+b") as file:
                file.truncate(start)
            return response
    if start <= 0 or response.status_code == 416:
        response = yield from answered(server, call, headers=headers, opens=True)
    # Another content, or all of it.
    part.unlink(missing_ok=True)
    if etag := response.headers.get("ETag"):
        tag.write_text(etag)
    else:
        tag.unlink(missing_ok=True)
    return response


def _written(response: httpx.Response, part: Path, *, told: Told) -> Talk[None]:
    done = part.stat().st_size if part.exists() else 0
    total = _total(response)

    def count(size: int) -> None:
        nonlocal done
        done += size
        told(Advance("receiving", done, total))

    with part.open("ab") as file:
        yield Save(response, file, count)


def _total(response: httpx.Response) -> int:
    whole = re.search(r"/(\d+)$", response.headers.get("Content-Range", ""))
    return int(whole[1] if whole else response.headers.get("Content-Length", 0))


def _digest(response: httpx.Response) -> str:
    """Returns the SHA-256 of the whole file, as the header Repr-Digest (RFC 9530) names it."""
    named = re.search(r"sha-256=:([A-Za-z0-9+/=]+):", response.headers.get("Repr-Digest", ""))
    try:
        return base64.b64decode(named[1], validate=True).hex() if named else ""
    except binascii.Error:
        return ""


def hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_members(archive: Path, files: Sequence[StoredFile]) -> None:
    """Compares the files in a tar file with the server's list. It unpacks nothing.

    Raises:
        DamagedFile: one of them is not on the list, or is another one; the archive is deleted.
    """
    listed = {file.path: file.sha256 for file in files}
    for path, found in _members(archive):
        # All are in one folder, whose name is not on the list.
        if listed.get(path.partition("/")[2]) != found:
            archive.unlink()
            raise DamagedFile(f"{path} arrived damaged, so {archive.name} was deleted. Download it again.")


def _members(archive: Path) -> list[tuple[str, str]]:
    found = []
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                content = tar.extractfile(member)
                if content is not None:
                    found.append((member.name, hashlib.file_digest(content, "sha256").hexdigest()))  # type: ignore[arg-type]
    except tarfile.TarError as broken:
        archive.unlink()
        raise DamagedFile(f"{archive.name} is no whole tar file and was deleted. Download it again.") from broken
    return found
