"""Notes which artifacts of an object store this host has copies of, and when they were last used.

A note per place names the files that are copies, with the times that they were given. So a host finds those that were
erased elsewhere, and never takes what it has made itself for a copy.
"""

import json
import os
import shutil
import threading
import time
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote, unquote

from django.conf import settings

from annotator.models import StoredFile

KEPT_UNUSED = timedelta(hours=1)
"""How long a copy stays at least after its last use, however little room there is."""
_NOTES = ".copies"
_in_use: set[Path] = set()


@contextmanager
def using(*places: Path) -> Iterator[None]:
    """Keeps the copies of places for as long as this process reads them."""
    new = set(places) - _in_use
    _in_use.update(new)
    try:
        yield
    finally:
        _in_use.difference_update(new)


def name_of(place: Path) -> str:
    """Returns a place's name in the table. Raises ValueError for one that is not among the artifacts."""
    return place.relative_to(settings.ARTIFACTS).as_posix()


def note_of(place: Path) -> Path:
    return Path(settings.ARTIFACTS) / _NOTES / quote(name_of(place), safe="")


def note(place: Path, copies: Mapping[str, int]) -> None:
    """Notes which files of a place are copies of what the store has, by name, with their times in nanoseconds.

    The note's own time is that of the last use. Copies that were noted before, and are not any more, are removed.
    """
    file = note_of(place)
    _drop(_noted_in(file), but=copies)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = file.with_name(f".{file.name}.{os.getpid()}.{threading.get_ident()}")
    unfinished.write_text(json.dumps(dict(copies)))
    unfinished.replace(file)


def _noted_in(file: Path) -> dict[str, int]:
    try:
        copies: dict[str, int] = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return copies


def _drop(copies: Mapping[str, int], *, but: Container[str]) -> int:
    """Removes copies, unless they have been written anew since; returns how many names went."""
    gone = {name: given for name, given in copies.items() if name not in but}
    for name, given in gone.items():
        path = Path(settings.ARTIFACTS) / name
        with suppress(FileNotFoundError):
            if path.stat().st_mtime_ns == given:
                path.unlink()
    return len(gone)


def unlink(place: Path) -> None:
    """Removes a file or a folder and all that is in it. Raises OSError."""
    try:
        shutil.rmtree(place)
    except FileNotFoundError:
        pass
    except NotADirectoryError:
        place.unlink()


@dataclass(frozen=True, order=True)
class _Noted:
    used: float
    note: Path
    place: Path


def tidy() -> int:
    """Removes copies of what the store has no more, and the least used ones above the limit; returns how many."""
    for place in list(_in_use):
        with suppress(OSError):
            os.utime(note_of(place))
    noted = []
    for file in (Path(settings.ARTIFACTS) / _NOTES).glob("[!.]*"):
        with suppress(OSError):  # another process of this host tidies as well
            noted.append(_Noted(file.stat().st_mtime, file, Path(settings.ARTIFACTS) / unquote(file.name)))
    removed = sum(_drop_gone(one) for one in noted)
    sizes = {one.place: _bytes_of(one.place) for one in noted}
    total = sum(sizes.values())
    for one in sorted(noted):
        unused = time.time() - one.used
        if total <= settings.ARTIFACTS_CACHE_MB * 10**6 or unused < KEPT_UNUSED.total_seconds():
            break
        unlink(one.place)
        one.note.unlink(missing_ok=True)
        total, removed = total - sizes[one.place], removed + 1
    return removed


def _drop_gone(noted: _Noted) -> int:
    """Removes the copies of files whose rows are gone; returns how many."""
    copies = _noted_in(noted.note)
    here = set(StoredFile.objects.filter(path__in=copies).values_list("path", flat=True))
    if gone := _drop(copies, but=here):
        note(noted.place, {name: given for name, given in copies.items() if name in here})
        os.utime(noted.note, (noted.used, noted.used))
    if not here:
        noted.note.unlink(missing_ok=True)
        for folder, _folders, _files in os.walk(noted.place, topdown=False):
            with suppress(OSError):  # it holds what this host has made itself
                Path(folder).rmdir()
    return gone


def _bytes_of(place: Path) -> int:
    total = 0
    for path in place.rglob("*") if place.is_dir() else [place]:
        with suppress(OSError):
            total += path.stat().st_size
    return total
