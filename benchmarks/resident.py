"""Watches how much memory our processes of one kind hold, and how long processes have worked (Linux only)."""

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

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
    return [pid for pid in descendants(os.getpid()) if kind in _command_line(pid)]


def descendants(ancestor: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdecimal():
                children.setdefault(int(_facts(int(folder.name))[1]), []).append(int(folder.name))
    found, waiting = [], [ancestor]
    while waiting:
        below = children.get(waiting.pop(), [])
        waiting += below
        found += below
    return found


def worked_seconds(kinds: Sequence[bytes], *, beside: Sequence[int] = ()) -> float:
    """Returns the processor time so far of our processes of these kinds, and of processes beside them.

    What has ended counts with the process that waited for it.
    """
    pids = {pid for kind in kinds for pid in processes(kind)} | set(beside)
    return sum(map(_worked, pids))


def _worked(pid: int) -> float:
    with suppress(OSError):
        return sum(map(int, _facts(pid)[11:15])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _facts(pid: int) -> list[str]:
    """Returns the fields of /proc/PID/stat behind the program's name, which may hold anything: state, parent, ..."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _command_line(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    return b""


def _held_by(pid: int, *, shared: bool) -> int:
    """Returns the bytes of a process's memory; of what several processes share, each holds its part."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
        sizes = {name: int(size.split()[0]) << 10 for name, _, size in (line.partition(":") for line in lines)}
        return sizes.get("Pss", 0) - (0 if shared else sizes.get("Pss_Shmem", 0))
    return 0
