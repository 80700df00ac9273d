"""Watches how much memory the processes of one kind hold."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PAUSE_SECONDS = 0.1
EARLY = 0.2
"""The part of the time, from its beginning, with whose peak the whole is compared."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Memory:
    """What the processes that have `kind` in their command lines hold together, in bytes, as long as it is watched."""

    def __init__(self, kind: bytes) -> None:
        self._kind = kind
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
        # At once, so that the shortest work has one look.
        while True:
            self._held.append((time.perf_counter(), sum(map(_resident, processes(self._kind)))))
            if self._over.wait(PAUSE_SECONDS):
                return


def processes(kind: bytes) -> list[int]:
    """Returns the ids of the processes that have this in their command line."""
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdecimal() and kind in (folder / "cmdline").read_bytes().replace(b"\0", b" "):
                found.append(int(folder.name))
    return found


def _resident(pid: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    return 0
