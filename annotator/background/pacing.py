"""Work that nobody waits for: done in slices, with rests between them while others need the machine.

Others are an import, which writes to the same tables, and everything that runs at ordinary priority: the web and
PostgreSQL. Workers run at a low one (`nice`), so what they use themselves does not count.
"""

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from annotator.db.clock import database_now
from annotator.models import ImportJob

BUSY_SHARE = 0.9
"""The share of the processors' time at ordinary priority from which on they count as needed."""
REST = 4
"""A rest lasts so many times as long as the slice before it, so that a fifth of a process is still used."""
LONGEST_REST_SECONDS = 5.0
IMPORT_IS_ALIVE = timedelta(seconds=15)
"""An import signs every two seconds; one whose worker was killed is no reason to rest."""
FEWEST_TICKS = 20
"""Over less time the kernel's ticks say too little."""
PROCESSORS = Path("/proc/stat")


def in_slices(work: Callable[[], int]) -> int:
    """Calls `work` until it returns 0, which says that nothing is left; returns the sum of its results.

    One slice should take less than a second.
    """
    total, processors = 0, Processors()
    while True:
        began = time.monotonic()
        done = work()
        total += done
        if not done:
            return total
        if processors.are_needed() or is_importing():
            time.sleep(min(REST * (time.monotonic() - began), LONGEST_REST_SECONDS))


class Processors:
    """Watches how much of the time since it was made, or since the last answer, went into ordinary work."""

    def __init__(self) -> None:
        self._worked, self._passed = _processor_ticks()
        self._needed = False

    def are_needed(self) -> bool:
        """Returns whether others leave no time; before FEWEST_TICKS have passed, whether they did before."""
        worked, passed = _processor_ticks()
        if passed - self._passed >= FEWEST_TICKS:
            self._needed = worked - self._worked >= BUSY_SHARE * (passed - self._passed)
            self._worked, self._passed = worked, passed
        return self._needed


def _processor_ticks() -> tuple[int, int]:
    """Returns how long all processors have worked at ordinary priority, and how long they have been there.

    Both are 0 where the kernel does not tell, as on macOS.
    """
    try:
        first = PROCESSORS.read_text().partition("\n")[0]
    except OSError:
        return 0, 0
    # cpu, then user, nice, system, idle, waiting for disks, interrupts, ... in ticks of 10 ms.
    user, _nice, system, *_others = times = [int(word) for word in first.split()[1:9]]
    return user + system, sum(times)


def is_importing() -> bool:
    """Returns whether a worker is importing a file at this moment."""
    alive_since = database_now() - IMPORT_IS_ALIVE
    return ImportJob.objects.filter(state=ImportJob.State.WORKING, heartbeat_at__gt=alive_since).exists()
