"""How much memory our processes of one kind hold, and how long they have worked (Linux only)."""

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

WEB, WORKERS, LIGHT, POSTGRES = b"annotator.launch.webserver", b"celery", b"-Q light", b"postgres"
"""Parts of the command lines by which the kinds are known."""
PAUSE_SECONDS = 0.2
LOOKS = 5
"""How often the processes are looked at before new ones are looked for."""
EARLY = 0.2
"""The part of the time, from its beginning, with whose peak the whole is compared."""


class Memory:
    """What our processes with `kind` in their command lines hold together, in bytes, as long as it is watched.

    Without `shared`, shared memory (Pss_Shmem) is left out, such as PostgreSQL's buffers, a cache of a set size.
    """

    def __init__(self, kind: bytes, *, shared: bool = True) -> None:
        self._kind, self._shared = kind, shared
        self._over = threading.Event()
        self._held: list[tuple[float, int]] = []

    @contextmanager
    def watched(self) -> Iterator[None]:
        watcher = threading.Thread(target=self._watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            self._over.set()
            watcher.join()

    @property
    def peak(self) -> int:
        return max((held for _, held in self._held), default=0)

    def growth(self) -> float:
        """Returns by what part the peak of the whole time is above that of its first fifth."""
        if not self._held:
            return 0.0
        first, last = self._held[0][0], self._held[-1][0]
        early = max(held for moment, held in self._held if moment <= first + EARLY * (last - first))
        return self.peak / early - 1 if early else 0.0

    def cells(self) -> tuple[str, str]:
        return f"{self.peak / 1e6:.0f}", f"{self.growth():.1%}"

    def _watch(self) -> None:
        # At once, so that the shortest work has one look. To look for processes takes longer than to look at them.
        known: list[int] = []
        for look in count():
            known = known if look % LOOKS else processes(self._kind)
            self._held.append((time.perf_counter(), sum(_held_by(pid, shared=self._shared) for pid in known)))
            if self._over.wait(PAUSE_SECONDS):
                return


def processes(kind: bytes) -> list[int]:
    """Returns the ids of our own descendants that have this in their command line: others may run the same programs."""
    return [pid for pid in descendants(os.getpid()) if kind in _read(pid, "cmdline").replace(b"\0", b" ")]


def descendants(ancestor: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and (facts := _facts(int(folder.name))):
            children.setdefault(int(facts[1]), []).append(int(folder.name))
    found, waiting = [], [ancestor]
    while waiting:
        below = children.get(waiting.pop(), [])
        waiting += below
        found += below
    return found


def worked_seconds(*kinds: bytes, beside: Sequence[int] = ()) -> float:
    """Returns the processor time so far of our processes of these kinds, and of processes beside them.

    What has ended counts with the process that waited for it.
    """
    pids = {pid for kind in kinds for pid in processes(kind)} | set(beside)
    return sum(sum(map(int, _facts(pid)[11:15])) for pid in pids) / os.sysconf("SC_CLK_TCK")


def machine_seconds() -> float:
    """Returns the processor time of everything on this machine so far."""
    busy = [int(part) for part in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    # Of the line's fields the fourth is idle time and the fifth is waiting for a disk.
    return (sum(busy) - busy[3] - busy[4]) / os.sysconf("SC_CLK_TCK")


def status(pid: int | str, name: str) -> int:
    """Returns a size in /proc/PID/status in bytes, such as VmRSS or VmHWM; 0 once the process has ended."""
    lines = _read(pid, "status").decode().splitlines()
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:")), 0)


def _facts(pid: int) -> list[str]:
    """Returns the fields of /proc/PID/stat behind the program's name, which may hold anything: state, parent, ..."""
    return _read(pid, "stat").decode().rpartition(")")[2].split()


def _held_by(pid: int, *, shared: bool) -> int:
    """Returns the bytes of a process's memory; of what several processes share, each holds its part."""
    lines = _read(pid, "smaps_rollup").decode().splitlines()[1:]
    sizes = {name: int(size.split()[0]) << 10 for name, _, size in (line.partition(":") for line in lines)}
    return sizes.get("Pss", 0) - (0 if shared else sizes.get("Pss_Shmem", 0))


def _read(pid: int | str, name: str) -> bytes:
    """Returns a file of /proc/PID, empty once the process has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_bytes()
    return b""
