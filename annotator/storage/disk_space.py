"""Room on the disks that the product fills: what writes much is refused while there is still room for the rest.

PostgreSQL ends where it finds no room for its log, so that imports, snapshots and runs stop before.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from annotator.refusals import Refusal

MEGABYTE = 10**6


class DiskNearlyFull(Refusal):
    """There would not be room enough left."""

    status = 507
    code = "disk_full"


@dataclass(frozen=True)
class Shortage:
    """A folder with less room than has to stay free; bytes."""

    folder: str
    path: Path
    free: int
    needed: int

    def __str__(self) -> str:
        free, needed = self.free // MEGABYTE, -(-self.needed // MEGABYTE)
        return f"{self.folder} has {free:,} MB free, and {needed:,} MB are needed"


def shortages(*, extra: int = 0) -> list[Shortage]:
    """Folders in which less than DISK_RESERVE_MB would be left, were so many bytes written; each disk once."""
    disks: dict[int, tuple[str, Path]] = {}
    needed = settings.DISK_RESERVE_MB * MEGABYTE + extra
    for name, path in _folders():
        with suppress(OSError):  # of a folder that we cannot look at nothing can be said
            disks.setdefault(path.stat().st_dev, (name, path))
    rooms = [Shortage(name, path, shutil.disk_usage(path).free, needed) for name, path in disks.values()]
    return [room for room in rooms if room.free < needed]


def require_room(*, extra: int = 0) -> None:
    """Called before much is written, by every stage that does.

    Raises:
        DiskNearlyFull: there is less room than has to stay free, and so many bytes.
    """
    if short := shortages(extra=extra):
        raise DiskNearlyFull(f"The disk is nearly full: {'; '.join(map(str, short))}. Try again when there is room.")


def for_pages(request: HttpRequest) -> dict[str, Any]:
    """For the templates of staff; looked at by those alone that ask."""
    return {"disk_shortages": shortages}


def _folders() -> Iterator[tuple[str, Path]]:
    """By the names that people are told; where ours is not made yet, the folder that it will be made in."""
    yield "the folder of the artifacts", next(parent for parent in _upwards(settings.ARTIFACTS) if parent.exists())
    if settings.DATABASE_DIR:
        yield "the folder of the database", Path(settings.DATABASE_DIR)
    # Uploads lie there while they arrive.
    yield "the folder for temporary files", Path(tempfile.gettempdir())


def _upwards(path: Path) -> list[Path]:
    return [path, *path.parents]
