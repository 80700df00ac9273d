"""Keeps the artifacts: in an object store, each file by the hash of its content, where ARTIFACTS_URL names one.

A place is a file or a folder under settings.ARTIFACTS. Without an object store that folder is the truth, and all
processes share it. With one it is this host's working copy: what is made here is `put`, what was made elsewhere is
brought with `bring` or read in parts with `opened`. The table StoredFile says which content each place has; equal
contents are stored once.

A content is stored before a row names it, and deleted under the lock of its hash once every row that names it is gone;
so no file lacks its content. What is gone nobody reads, and `erase_gone` deletes it. A process that is killed before it
writes a row leaves a content without one, which `erase_orphans` deletes.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection, transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.db.locks import waiting_transaction_lock
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.storage import disk_space, object_store, working_copies
from annotator.infrastructure.storage.object_store import PART, StoreAway
from annotator.infrastructure.storage.working_copies import name_of
from annotator.models import StoredFile
from annotator.models.jobs import removers

ORPHANED_AFTER = timedelta(days=1)
OF_WORK = ("checkpoint", "reference", "rows", "judging")
"""Folders of a run that it needs only while it is under way. Rows and answers are people's texts."""
_DAMAGED = gettext_lazy("The object store holds another content of %(file)s than was put there.")
_LEAST_READ = _MOST_HELD = 1 << 20
_AT_ONCE = 1000
Leave = Callable[[str], bool]
Check = Callable[[], None]


def _nothing(_name: str) -> bool:
    return False


def is_hidden(name: str) -> bool:
    """Returns whether a file or folder is one that somebody has not finished yet."""
    return name.startswith(".")


def is_of_work(name: str) -> bool:
    """Returns whether nobody needs a file or folder of a run once it has ended."""
    return is_hidden(name) or name in OF_WORK


class Damaged(Refusal):
    """The object store holds another content than was put there."""

    status = 500
    code = "store_damaged"


def is_remote() -> bool:
    """Returns whether the artifacts are in an object store."""
    return bool(settings.ARTIFACTS_STORE)


# What a place holds ----------------------------------------------------------------------------------------


def _files(*places: Path, gone: bool = False) -> QuerySet[StoredFile]:
    wanted = Q(pk__in=())
    for place in places:
        wanted |= Q(path=name_of(place)) | Q(path__startswith=f"{name_of(place)}/")
    return StoredFile.objects.filter(wanted, gone=gone)


def _row(path: Path) -> StoredFile | None:
    """Returns the file's row; None where this host alone has it, as while it is being made."""
    return _files(path).first() if is_remote() else None


def has(place: Path) -> bool:
    """Returns whether there is such a file or folder."""
    return _files(place).exists() if is_remote() else place.exists()


def is_left(place: Path) -> bool:
    """Returns whether anything of a file or folder is left, here or in the store, readable or not."""
    return place.exists() or (is_remote() and (_files(place).exists() or _files(place, gone=True).exists()))


def size_of(path: Path) -> int:
    """Returns the bytes of a file. Raises FileNotFoundError."""
    row = _row(path)
    return row.bytes if row else path.stat().st_size


def places_in(folder: str) -> list[Path]:
    """Returns what lies in a folder of the artifacts, here or in the store, by name."""
    top = Path(settings.ARTIFACTS) / folder
    found = set(top.glob("*"))
    if is_remote():
        names = _files(top).values_list("path", flat=True)
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


def sha256_of(path: Path) -> str:
    """Returns the hash of what is read there now, not of what was stored. Raises FileNotFoundError and StoreAway."""
    digest = hashlib.sha256()
    with closing(opened(path)) as file:
        while part := file.read(PART):
            digest.update(part)
    return digest.hexdigest()


def bring(place: Path, *, leave: Leave = _nothing) -> Path:
    """Makes the working copy of a place the same as the store has it, and returns the place.

    Where the store has nothing, nothing changes here. Files that it does not know of stay, as those that `leave` names.

    Raises:
        StoreAway, Damaged, FileNotFoundError: It cannot be brought, or is erased meanwhile.
        DiskNearlyFull: There is no room for it here.
    """
    if not is_remote():
        return place
    rows = [row for row in _files(place) if not _is_left_out(place, row, leave)]
    if rows:
        # Before the copies are there: whoever is killed meanwhile leaves none that nobody knows of.
        working_copies.note(place, {row.path: _nanoseconds(row.stored_at) for row in rows})
    missing = [row for row in rows if not _is_same(_path_of(row), row)]
    if missing:
        disk_space.require_room(extra=sum(row.bytes for row in missing))
    for row in missing:
        _download(row, _path_of(row))
    return place


def is_newer_here(place: Path) -> bool:
    """Returns whether this host has made a file of the place anew since it was stored."""
    times = {row.path: _nanoseconds(row.stored_at) for row in _files(place)} if is_remote() else {}
    with suppress(OSError):
        return any((Path(settings.ARTIFACTS) / name).stat().st_mtime_ns > time for name, time in times.items())
    return False


def _path_of(row: StoredFile) -> Path:
    return Path(settings.ARTIFACTS) / row.path


def _is_left_out(place: Path, row: StoredFile, leave: Leave) -> bool:
    return any(map(leave, Path(row.path).relative_to(name_of(place)).parts))


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
    handle, unfinished = tempfile.mkstemp(prefix=working_copies.COMING, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            for start in range(0, row.bytes, PART):
                part = object_store.part_of(row.sha256, start=start, length=min(PART, row.bytes - start))
                digest.update(part)
                file.write(part)
        if digest.hexdigest() != row.sha256:
            raise Damaged(_DAMAGED % {"file": row.path})
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
    stamp: tuple[int, int, int] = (0, 0, 0)


def put(place: Path, *, leave: Leave = _nothing, source: Path | None = None, require_ours: Check | None = None) -> None:
    """Stores a file or folder, whole or not at all, in place of what the store has there.

    `leave` says of the names of files and folders which ones are neither stored nor removed from the store. `source`
    holds the content instead of the place itself. `require_ours` raises where the work is not this worker's any more.
    Without an object store nothing is done.

    Raises:
        StoreAway: Nothing has changed.
    """
    if not is_remote():
        return
    source, began = source or place, database_now()
    paths = {name_of(place / path.relative_to(source)): path for path in _walk(source, leave)}
    contents = {name: _read(path) for name, path in paths.items()}
    if require_ours:
        with transaction.atomic():
            require_ours()
    for name, content in contents.items():
        _upload(name, content)
    rows = _write_rows(place, contents, began, leave=leave, require_ours=require_ours)
    working_copies.note(place, {row.path: _nanoseconds(row.stored_at) for row in rows})
    for row in rows:
        # Of what was read: the place itself may have another content by now.
        with suppress(OSError, KeyError):
            _date(paths[row.path], row)


@transaction.atomic
def _write_rows(
    place: Path, contents: dict[str, _Content], began: datetime, *, leave: Leave, require_ours: Check | None
) -> list[StoredFile]:
    """Writes which files the place has now; returns their rows."""
    waiting_transaction_lock("artifact place", int(hashlib.sha256(name_of(place).encode()).hexdigest()[:7], 16))
    if require_ours:
        require_ours()
    _lock({content.sha256 for content in contents.values()})
    for name, content in contents.items():
        # Whoever deleted the last row of this content meanwhile has deleted the content.
        _upload(name, content)
    before = [row for row in _files(place) if not _is_left_out(place, row, leave)]
    gone = [row.pk for row in before if row.path not in contents or contents[row.path].sha256 != row.sha256]
    StoredFile.objects.filter(pk__in=gone).update(gone=True)
    rows = [
        StoredFile(path=name, sha256=content.sha256, bytes=content.size, stored_at=began)
        for name, content in contents.items()
    ]
    # What is there as it is keeps its time.
    StoredFile.objects.bulk_create(rows, ignore_conflicts=True)
    return list(_files(place))


def _upload(name: str, content: _Content) -> None:
    """Stores the content, if it is not there. Raises Damaged where its file was written to since it was hashed."""
    if object_store.holds(content.sha256):
        return
    object_store.upload(content.sha256, content.file)
    if isinstance(content.file, Path) and _stamp(content.file) != content.stamp:
        _erase([content.sha256])
        raise Damaged(_DAMAGED % {"file": name})


def _stamp(path: Path) -> tuple[int, int, int]:
    about = path.stat()
    return about.st_ino, about.st_size, about.st_mtime_ns


def _walk(source: Path, leave: Callable[[str], bool]) -> Iterator[Path]:
    if source.is_file():
        yield source
        return
    for child in sorted(source.iterdir()):
        if not leave(child.name):
            yield from _walk(child, leave)


def _read(path: Path) -> _Content:
    if path.stat().st_size <= _MOST_HELD:
        held = path.read_bytes()
        return _Content(hashlib.sha256(held).hexdigest(), len(held), held)
    stamp = _stamp(path)
    with path.open("rb") as file:
        return _Content(hashlib.file_digest(file, "sha256").hexdigest(), stamp[1], path, stamp)


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
        StoreAway: Nobody can read them any more, but they are left in the store (`is_left`) until it answers.
    """
    for place in places:
        working_copies.unlink(place)
    if not is_remote():
        return
    _forget(*places)
    # In a transaction that is rolled back the rows come back, and need their contents: then `erase_gone` does it.
    for place in places if not connection.in_atomic_block else ():
        _erase(set(_files(place, gone=True).values_list("sha256", flat=True)))


def discard(*places: Path) -> None:
    """Removes what nobody needs, here, and soon from the store as well; it waits for nobody and does not fail."""
    for place in places:
        shutil.rmtree(place, ignore_errors=True)
        with suppress(OSError):
            place.unlink()
    if is_remote():
        with suppress(OSError, DatabaseError, InterfaceError):
            _forget(*places)


def _forget(*places: Path) -> None:
    _files(*places).update(gone=True)
    for place in places:
        working_copies.note_of(place).unlink(missing_ok=True)


# The models say which files nobody may read any more.
removers.append(discard)


def _erase(hashes: Iterable[str]) -> None:
    """Deletes the contents that only files that are gone have, and then these files' rows.

    One that cannot be deleted keeps no other from it; the first one's StoreAway is raised at the end.
    """
    failed = []
    for sha256 in sorted(hashes):
        try:
            with transaction.atomic():
                _lock([sha256])
                rows = StoredFile.objects.filter(sha256=sha256)
                if not rows.filter(gone=False).exists():
                    object_store.delete(sha256)
                rows.filter(gone=True).delete()
        except StoreAway as away:
            failed.append(away)
    if failed:
        raise failed[0]


def erase_gone() -> int:
    """Deletes from the store what is gone; returns how many contents. Raises StoreAway."""
    if not is_remote():
        return 0
    hashes = set(StoredFile.objects.filter(gone=True).values_list("sha256", flat=True)[:_AT_ONCE])
    _erase(hashes)
    return len(hashes)


def erase_orphans(*, now: datetime) -> int:
    """Deletes contents without a row, which killed processes have left; returns how many. Raises StoreAway."""
    if not is_remote():
        return 0
    number = 0
    for old in object_store.older_than(now - ORPHANED_AFTER):
        orphans = old - set(StoredFile.objects.filter(sha256__in=old).values_list("sha256", flat=True))
        _erase(orphans)
        number += len(orphans)
    return number
