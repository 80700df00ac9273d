"""Notes which artifacts of an object store this host has copies of, and when they were last used.

A note per place names the files that are copies, with the times that they were given. So a host finds those that were
erased elsewhere, and never takes what it has made itself for a copy.
"""

import hashlib
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

from django.conf import settings

from annotator.models import StoredFile

KEPT_UNUSED = timedelta(hours=1)
"""How long a copy stays at least after its last use, however little room there is."""
COMING = ".coming-"
"""What the name of a file begins with that is on its way."""
sweeps: list[Callable[[], object]] = []
"""What removes files that a host has and nobody needs, each kind by its own rule; every host does all of it."""
_NOTES = ".copies"
_in_use: set[Path] = set()


@contextmanager
def using(*places: Path) -> Iterator[None]:
    """Keeps the copies of places, of those that are among the artifacts, for as long as this process reads them."""
    new = {place for place in places if place.is_relative_to(settings.ARTIFACTS)} - _in_use
    _in_use.update(new)
    try:
        yield
    finally:
        _in_use.difference_update(new)


def name_of(place: Path) -> str:
    """Returns a place's name in the table. Raises ValueError for one that is not among the artifacts."""
    return place.relative_to(settings.ARTIFACTS).as_posix()


def note_of(place: Path) -> Path:
    return Path(settings.ARTIFACTS) / _NOTES / f"{hashlib.sha256(name_of(place).encode()).hexdigest()[:32]}.json"


def note(place: Path, copies: Mapping[str, int]) -> None:
    """Notes which files of a place are copies of what the store has, by name, with their times in nanoseconds.

    The note's own time is that of the last use. Copies that were noted before, and are not any more, are removed.
    """
    file = note_of(place)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _drop(_noted_in(file), but=copies)
    _write(file, copies)


def _write(file: Path, copies: Mapping[str, int]) -> None:
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
    """Removes copies that have not been written anew, and folders that so become empty; returns how many went."""
    gone = {name: given for name, given in copies.items() if name not in but}
    top = Path(settings.ARTIFACTS)
    for name, given in gone.items():
        path = top / name
        with suppress(OSError):
            if path.stat().st_mtime_ns == given:
                path.unlink()
        for folder in path.parents:
            if folder == top:
                break
            try:
                folder.rmdir()
            except OSError:  # it holds something else, or is gone
                break
    return len(gone)


def unlink(place: Path) -> None:
    """Removes a file or a folder and all that is in it. Raises OSError."""
    try:
        shutil.rmtree(place)
    except FileNotFoundError:
        pass
    except NotADirectoryError:
        place.unlink()


def sweep() -> None:
    """Removes from this host what nobody needs, copy or not: a process that was killed here has left it.

    Raises an ExceptionGroup of what could not be done; the rest is.
    """
    failed = []
    for one in sweeps:
        try:
            one()
        except Exception as error:  # noqa: BLE001  one kind that fails keeps no other from being swept
            failed.append(error)
    for path in Path(settings.ARTIFACTS).rglob(f"{COMING}*"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > KEPT_UNUSED.total_seconds():
                path.unlink()
    if failed:
        raise ExceptionGroup("files that nobody needs", failed)


def tidy() -> int:
    """Removes copies of what the store has no more, and the least used ones above the limit; returns how many."""
    for place in list(_in_use):
        with suppress(OSError):
            os.utime(note_of(place))
    used = {}
    for file in (Path(settings.ARTIFACTS) / _NOTES).glob("[!.]*.json"):
        with suppress(OSError):  # another process of this host tidies as well
            used[file] = file.stat().st_mtime
    copies = {file: _noted_in(file) for file in used}
    here: set[str] = set()
    for noted in copies.values():
        here.update(StoredFile.objects.filter(path__in=noted, gone=False).values_list("path", flat=True))
    removed = 0
    for file, noted in copies.items():
        if _is_as_of(file, used[file]) and (gone := _drop(noted, but=here)):
            _keep(file, {name: given for name, given in noted.items() if name in here}, used[file])
            removed += gone
    return removed + _make_room({file: _noted_in(file) for file in used}, used)


def _make_room(copies: Mapping[Path, Mapping[str, int]], used: Mapping[Path, float]) -> int:
    """Removes the copies that were used least recently until there are not too many; returns how many."""
    sizes = {}
    for name in {name for noted in copies.values() for name in noted}:
        with suppress(OSError):
            sizes[name] = (Path(settings.ARTIFACTS) / name).stat().st_size
    total, removed = sum(sizes.values()), 0
    young = [file for file in copies if time.time() - used[file] < KEPT_UNUSED.total_seconds()]
    # A file may belong to several places: a model, and the run that has made it.
    needed = {name for file in young for name in copies[file]}
    for file in sorted(copies.keys() - young, key=lambda file: used[file]):
        if total <= settings.ARTIFACTS_CACHE_MB * 10**6:
            break
        if not _is_as_of(file, used[file]):
            continue
        removed += _drop(copies[file], but=needed)
        total -= sum(sizes.pop(name, 0) for name in copies[file] if name not in needed)
        _keep(file, {name: given for name, given in copies[file].items() if name in needed}, used[file])
    return removed


def _is_as_of(file: Path, used: float) -> bool:
    """Returns whether nobody has used the copies of a note since they were looked at."""
    with suppress(OSError):
        return file.stat().st_mtime == used
    return False


def _keep(file: Path, copies: Mapping[str, int], used: float) -> None:
    """Writes the note anew, as of its last use; without copies there is none."""
    if not copies:
        file.unlink(missing_ok=True)
        return
    _write(file, copies)
    os.utime(file, (used, used))
