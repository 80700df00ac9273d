"""The processor time of the web and of PostgreSQL, which other work on the machine hardly changes (Linux only)."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

WEB = b"annotator.launch.webserver"
PROC = Path("/proc")


def milliseconds() -> float:
    """Returns how long the processes of the web and of PostgreSQL have worked so far; 0 where there is no /proc."""
    return sum(_worked(folder) for folder in _processes()) / 1_000_000


def _processes() -> Iterator[Path]:
    from django.db import connection

    if not PROC.exists():
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        own = cursor.fetchone()[0]
    server = _parent(PROC / str(own))
    for folder in PROC.iterdir():
        # A process may end at any moment.
        with suppress(OSError):
            if folder.name.isdecimal() and (_parent(folder) == server or WEB in (folder / "cmdline").read_bytes()):
                yield folder


def _parent(process: Path) -> int:
    return int((process / "stat").read_text().rpartition(")")[2].split()[1])


def _worked(process: Path) -> int:
    """Returns the nanoseconds of all threads of a process."""
    total = 0
    for thread in (process / "task").iterdir():
        with suppress(OSError):
            total += int((thread / "schedstat").read_text().split()[0])
    return total
