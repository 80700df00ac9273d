"""Refuses work that writes much while the disks still have room for everything else.

PostgreSQL stops if it finds no room for its log, so imports, snapshots and runs have to stop before that.
"""

import errno
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext as _

from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.web.numbers import number

MEGABYTE = 10**6
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class DiskNearlyFull(Refusal):
    """The work would leave too little room on a disk."""

    status = 507
    code = "disk_full"


@dataclass(frozen=True)
class Shortage:
    """A folder on a disk with too little room. `free` and `needed` are bytes."""

    folder: str
    path: Path
    free: int
    needed: int

    def __str__(self) -> str:
        # Free is rounded down and needed up, so that the two never look equal.
        free, needed = self.free // MEGABYTE, -(-self.needed // MEGABYTE)
        text = _("%(folder)s has %(free)s MB free, and %(needed)s MB are needed")
        return text % {"folder": self.folder, "free": number(free, 0), "needed": number(needed, 0)}


def shortages(*, extra: int = 0) -> list[Shortage]:
    """Returns the folders that would have less than DISK_RESERVE_MB left after `extra` bytes more; each disk once."""
    return [room for room in rooms(extra=extra) if room.free < room.needed]


def rooms(*, extra: int = 0) -> list[Shortage]:
    """Returns what is free in each folder and what is needed there, whether it is short or not; each disk once."""
    disks: dict[int, tuple[str, Path]] = {}
    needed = settings.DISK_RESERVE_MB * MEGABYTE + extra
    # The folder of the artifacts may not exist yet; then it will be made in the nearest parent that does.
    artifacts = next(path for path in [settings.ARTIFACTS, *settings.ARTIFACTS.parents] if path.exists())
    folders: list[tuple[str, Path]] = [(_("the folder of the artifacts"), artifacts)]
    if settings.DATABASE_DIR:
        folders.append((_("the folder of the database"), Path(settings.DATABASE_DIR)))
    # Uploads are stored there while they arrive.
    folders.append((_("the folder for temporary files"), Path(tempfile.gettempdir())))
    for name, path in folders:
        with suppress(OSError):  # nothing is known of a folder that this process may not look at
            # Folders on one disk share its room, and the first of them stands for it.
            disks.setdefault(path.stat().st_dev, (name, path))
    return [Shortage(name, path, shutil.disk_usage(path).free, needed) for name, path in disks.values()]


def require_room(*, extra: int = 0) -> None:
    """Checks the disks; every stage that writes much calls this before it does, with the bytes that it knows of.

    Raises:
        DiskNearlyFull: A disk would have less than DISK_RESERVE_MB left.
    """
    if short := shortages(extra=extra):
        text = _("The disk is nearly full: %(folders)s. Try again when there is room.")
        raise DiskNearlyFull(text % {"folders": "; ".join(map(str, short))})


@contextmanager
def full_disk_named() -> Iterator[None]:
    """Turns the error of a full disk into DiskNearlyFull."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise DiskNearlyFull(_("The disk is full. Try again when there is room.")) from error


def for_pages(request: HttpRequest) -> dict[str, Any]:
    """Gives templates the shortages as a function, so that only those that show them look at the disks."""
    return {"disk_shortages": shortages}
