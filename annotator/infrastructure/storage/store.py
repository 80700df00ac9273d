"""Keeps the artifacts: in an object store, each file by the hash of its content, where ARTIFACTS_URL names one.

A place is a file or a folder under settings.ARTIFACTS. Without an object store that folder is the truth, and all
processes share it. With one it is this host's working copy: what is made here is `put`, what was made elsewhere is
brought with `bring` or read in parts with `opened`. The table StoredFile says which content each place has; equal
contents are stored once.

A content is stored before a row names it and deleted after its last row, both under the lock of its hash, so a row
never names a content that is not there. A process that is killed in between leaves a content without a row, which
`collect` deletes.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import IO

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.db.locks import waiting_transaction_lock
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.storage import object_store, working_copies
from annotator.infrastructure.storage.object_store import PART, StoreAway
from annotator.infrastructure.storage.working_copies import name_of
from annotator.models import StoredFile
from annotator.models.jobs import removers

ORPHANED_AFTER = timedelta(days=1)
_LEAST_READ = 1 << 20


class Damaged(Refusal):
    """The object store holds another content than was put there."""

    status = 500
    code = "store_damaged"


def is_remote() -> bool:
    """Returns whether the artifacts are in an object store."""
    return bool(settings.ARTIFACTS_STORE)


# What a place holds ----------------------------------------------------------------------------------------


def _files(*places: Path) -> QuerySet[StoredFile]:
    wanted = Q(pk__in=())
    for place in places:
        wanted |= Q(path=name_of(place)) | Q(path__startswith=f"{name_of(place)}/")
    return StoredFile.objects.filter(wanted)


def _row(path: Path) -> StoredFile | None:
    """Returns the file's row; None where this host alone has it, as while it is being made."""
    return StoredFile.objects.filter(path=name_of(path)).first() if is_remote() else None


def has(place: Path) -> bool:
    """Returns whether there is such a file or folder."""
    return _files(place).exists() if is_remote() else place.exists()


def size_of(path: Path) -> int:
    """Returns the bytes of a file. Raises FileNotFoundError."""
    row = _row(path)
    return row.bytes if row else path.stat().st_size


def places_in(folder: str) -> list[Path]:
    """Returns what lies in a folder of the artifacts, here or in the store, by name."""
    top = Path(settings.ARTIFACTS) / folder
    found = set(top.glob("*"))
    if is_remote():
        names = StoredFile.objects.filter(path__startswith=f"{folder}/").values_list("path", flat=True)
        found |= {top / name.split("/")[1 + folder.count("/")] for name in names.iterator()}
    return sorted(found)


# Reading ---------------------------------------------------------------------------------------------------


class StoredReader:
    """A file in the store, which is read in parts."""

    def __init__(self, row: StoredFile) -> None:
        self._row, self._place = row, 0
        self._part, self._start = b"", 0

    def seek(self, place: int, /) -> int:
        self._place = place
        return place

    def read(self, size: int, /) -> bytes:
        """Returns some of the next bytes; none at the end alone. Raises StoreAway."""
        wanted = min(size, self._row.bytes - self._place)
        if wanted <= 0:
            return b""
        within = self._place - self._start
        if not 0 <= within < len(self._part):
            length = min(max(_LEAST_READ, min(wanted, PART)), self._row.bytes - self._place)
            self._part = object_store.part_of(self._row.sha256, start=self._place, length=length)
            self._start, within = self._place, 0
        piece = self._part[within : within + wanted]
        self._place += len(piece)
        return piece

    def close(self) -> None:
        self._part = b""


def opened(path: Path) -> IO[bytes] | StoredReader:
    """Opens a file for reading, wherever it is. Raises FileNotFoundError."""
    row = _row(path)
    return path.open("rb") if row is None or _is_same(path, row) else StoredReader(row)


def content_of(path: Path) -> bytes:
    """Returns a small file. Raises FileNotFoundError and StoreAway."""
    row = _row(path)
    if row is None or _is_same(path, row):
        return path.read_bytes()
    return object_store.part_of(row.sha256, start=0, length=row.bytes) if row.bytes else b""


def bring(place: Path) -> Path:
    """Makes the working copy of a place the same as the store has it, and returns the place.

    Where the store has nothing, nothing changes here; files that it does not know of stay.

    Raises:
        StoreAway, Damaged: It cannot be brought.
    """
    if not is_remote():
        return place
    rows = list(_files(place))
    for row in rows:
        path = Path(settings.ARTIFACTS) / row.path
        if not _is_same(path, row):
            _download(row, path)
    if rows:
        working_copies.note(place, {row.path: _nanoseconds(row.stored_at) for row in rows})
    return place


def _is_same(path: Path, row: StoredFile) -> bool:
    # What came from the store, or went there, has the time of its row, and is never written to after that.
    with suppress(OSError):
        about = path.stat()
        return about.st_size == row.bytes and about.st_mtime_ns == _nanoseconds(row.stored_at)
    return False


def _nanoseconds(moment: datetime) -> int:
    return int((moment - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1)) * 1000


def _download(row: StoredFile, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    handle, unfinished = tempfile.mkstemp(prefix=".coming-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            for start in range(0, row.bytes, PART):
                part = object_store.part_of(row.sha256, start=start, length=min(PART, row.bytes - start))
                digest.update(part)
                file.write(part)
        if digest.hexdigest() != row.sha256:
            text = _("The object store holds another content of %(file)s than was put there.")
            raise Damaged(text % {"file": row.path})
        _date(Path(unfinished), row)
        Path(unfinished).replace(path)
    finally:
        Path(unfinished).unlink(missing_ok=True)


def _date(path: Path, row: StoredFile) -> None:
    os.utime(path, ns=(_nanoseconds(row.stored_at),) * 2)


# Writing ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Content:
    sha256: str
    size: int
    file: Path | bytes  # a small file is held: it may grow meanwhile


def put(place: Path, *, leave: Callable[[str], bool] = lambda _name: False, source: Path | None = None) -> None:
    """Stores a file or folder, whole or not at all, in place of what the store has there.

    `leave` says of the names of files and folders which ones are neither stored nor removed from the store. `source`
    holds the content instead of the place itself. Without an object store nothing is done.

    Raises:
        StoreAway: Nothing has changed.
    """
    if not is_remote():
        return
    source = source or place
    contents = {name_of(place / path.relative_to(source)): _read(path) for path in _walk(source, leave)}
    for content in contents.values():
        if not StoredFile.objects.filter(sha256=content.sha256).exists():
            object_store.upload(content.sha256, content.file)
    gone = _write_rows(place, contents, leave)
    transaction.on_commit(partial(_erase, {row.sha256 for row in gone}))
    rows = list(_files(place))
    for row in rows:
        with suppress(OSError):
            _date(Path(settings.ARTIFACTS) / row.path, row)
    working_copies.note(place, {row.path: _nanoseconds(row.stored_at) for row in rows})


@transaction.atomic
def _write_rows(place: Path, contents: dict[str, _Content], leave: Callable[[str], bool]) -> list[StoredFile]:
    """Writes which files the place has now; returns the rows of those that it had."""
    _lock({content.sha256 for content in contents.values()})
    for content in contents.values():
        # Whoever deleted the last row of this content meanwhile has deleted the content.
        if not object_store.holds(content.sha256):
            object_store.upload(content.sha256, content.file)
    now = database_now()
    before = [row for row in _files(place) if not any(map(leave, Path(row.path).relative_to(name_of(place)).parts))]
    gone = [row for row in before if row.path not in contents or contents[row.path].sha256 != row.sha256]
    StoredFile.objects.filter(pk__in=[row.pk for row in gone]).delete()
    rows = [
        StoredFile(path=name, sha256=content.sha256, bytes=content.size, stored_at=now)
        for name, content in contents.items()
    ]
    # What is there as it is keeps its time.
    StoredFile.objects.bulk_create(rows, ignore_conflicts=True)
    return gone


def _walk(source: Path, leave: Callable[[str], bool]) -> Iterator[Path]:
    if source.is_file():
        yield source
        return
    for child in sorted(source.iterdir()):
        if not leave(child.name):
            yield from _walk(child, leave)


def _read(path: Path) -> _Content:
    if path.stat().st_size <= PART:
        held = path.read_bytes()
        return _Content(hashlib.sha256(held).hexdigest(), len(held), held)
    with path.open("rb") as file:
        return _Content(hashlib.file_digest(file, "sha256").hexdigest(), os.fstat(file.fileno()).st_size, path)


def _lock(hashes: Iterable[str]) -> None:
    # In one order, so that two who want the same ones never wait for each other. Some hashes share a lock.
    for number in sorted({int(sha256[:4], 16) for sha256 in hashes}):
        waiting_transaction_lock("artifact store", number)


def forget_here(place: Path) -> None:
    """Removes the working copy of what the store has, on a host that does not need it itself."""
    if is_remote():
        working_copies.unlink(place)
        working_copies.note_of(place).unlink(missing_ok=True)


# Removing --------------------------------------------------------------------------------------------------


def remove(*places: Path) -> None:
    """Removes files and folders, here and in the store; other hosts remove their copies within a minute.

    Raises:
        OSError: One cannot be removed here.
        StoreAway: Nobody can read them any more, but the store may hold a content until `collect` deletes it.
    """
    for place in places:
        working_copies.unlink(place)
    if not is_remote():
        return
    hashes = set(_files(*places).values_list("sha256", flat=True))
    _files(*places).delete()
    for place in places:
        working_copies.note_of(place).unlink(missing_ok=True)
    # In a transaction that is rolled back the rows come back, and need their contents.
    transaction.on_commit(partial(_erase, hashes))


def discard(*places: Path) -> None:
    """Removes what nobody needs, as far as that can be done now; the sweeps find the rest."""
    for place in places:
        shutil.rmtree(place, ignore_errors=True)
        with suppress(OSError, StoreAway):
            remove(place)


# The models say which files nobody may read any more.
removers.append(discard)


def _erase(hashes: Iterable[str]) -> None:
    """Deletes the contents that no row names any more."""
    for sha256 in sorted(hashes):
        with transaction.atomic():
            _lock([sha256])
            if not StoredFile.objects.filter(sha256=sha256).exists():
                object_store.delete(sha256)


def collect(*, now: datetime) -> int:
    """Deletes contents without a row, which killed processes have left; returns how many. Raises StoreAway."""
    number = 0
    for old in object_store.older_than(now - ORPHANED_AFTER) if is_remote() else ():
        orphans = old - set(StoredFile.objects.filter(sha256__in=old).values_list("sha256", flat=True))
        _erase(orphans)
        number += len(orphans)
    return number
