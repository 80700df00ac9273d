"""Work that nobody waits for: done in slices, with rests between them while others need the machine.

Others are an import, which writes to the same tables, and everything that runs at ordinary priority: the web and
PostgreSQL. Workers run at a low one (`nice`), so what they use themselves does not count, nor does what PostgreSQL does
for the thread that asks, where its process can be seen.
"""

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from django.db import connection

from annotator.db import locks
from annotator.db.clock import database_now
from annotator.models import ImportJob

LEFT = 1.0
"""Processors are needed where ordinary work leaves less than this; of a single one, less than LEFT_OF_ONE."""
LEFT_OF_ONE = 0.1
REST, REST_BESIDE_IMPORT = 9, 19
"""A rest lasts so many times as long as the slice before it, so that a tenth of a process is still used, or a twentieth
beside an import, which somebody waits for and which ends soon."""
LONGEST_REST_SECONDS = 10.0
IMPORT_IS_ALIVE = timedelta(seconds=15)
"""An import signs every two seconds; one whose worker was killed is no reason to rest."""
FEWEST_TICKS = 20
"""Over less time the kernel's ticks say too little."""
PROCESSORS = Path("/proc/stat")


def in_slices(work: Callable[[], int], *, least: float = LEFT) -> int:
    """Calls `work` until it returns 0, which says that nothing is left; returns the sum of its results.

    One slice should take less than a second. It rests while ordinary work leaves less than `least` processors.
    """
    total, processors = 0, Processors()
    while True:
        began = time.monotonic()
        done = work()
        total += done
        if not done:
            return total
        if is_importing():
            rest = REST_BESIDE_IMPORT
        elif processors.are_needed(least):
            rest = REST
        else:
            continue
        time.sleep(min(rest * (time.monotonic() - began), LONGEST_REST_SECONDS))


def alone_in_slices(subject: str, number: int, work: Callable[[], int]) -> int:
    """Does what `in_slices` does, unless somebody is at the subject with this number already; returns 0 then.

    Beat asks for the same work every few seconds. Each of them would keep a thread of the light worker to itself, until
    none is left for what people wait for.
    """
    with locks.session_lock(subject, number) as is_alone:
        return in_slices(work) if is_alone else 0


class Processors:
    """Watches what others' ordinary work has left of the processors since this was made, or since the last answer.

    What PostgreSQL does for this thread's connection is not others' work.
    """

    def __init__(self) -> None:
        self._worked, self._passed, self.number = _processor_ticks()
        self._backend, self._served = _backend_ticks()
        self._left = float(self.number)

    def left(self) -> float:
        """Returns how many processors others have left; before FEWEST_TICKS have passed, how many they left before."""
        worked, passed, _ = _processor_ticks()
        if passed - self._passed >= FEWEST_TICKS:
            backend, served = _backend_ticks()
            own = served - self._served if backend == self._backend else 0
            self._left = self.number * (1 - (worked - self._worked - own) / (passed - self._passed))
            self._worked, self._passed, self._backend, self._served = worked, passed, backend, served
        return self._left

    def are_needed(self, least: float = LEFT) -> bool:
        """Returns whether others leave less than `least`; never where the kernel does not tell, as on macOS."""
        return self.left() < (least if self.number > 1 else LEFT_OF_ONE) if self.number else False


def _processor_ticks() -> tuple[int, int, int]:
    """Returns how long all processors have worked at ordinary priority, how long they have existed, and their number.

    All are 0 where the kernel does not tell.
    """
    try:
        first, *others = PROCESSORS.read_text().splitlines()
    except OSError:
        return 0, 0, 0
    # cpu, then user, nice, system, idle, waiting for disks, interrupts, ... in ticks of 10 ms.
    user, _nice, system, *_others = times = [int(word) for word in first.split()[1:9]]
    return user + system, sum(times), sum(line.startswith("cpu") for line in others)


def _backend_ticks() -> tuple[int, int]:
    """Returns the process that serves this thread's connection, and how long it has worked.

    That is 0 where it cannot be seen, such as in another container.
    """
    if connection.connection is None:
        return 0, 0
    process: int = connection.connection.info.backend_pid
    try:
        name, _, fields = (PROCESSORS.parent / str(process) / "stat").read_text().rpartition(")")
    except OSError:
        return process, 0
    # The same number may be another program's here. Behind the name, the 12th and 13th field are its ticks.
    return process, sum(map(int, fields.split()[11:13])) if name.endswith("(postgres") else 0


def is_importing() -> bool:
    """Returns whether a worker is importing a file at this moment."""
    alive_since = database_now() - IMPORT_IS_ALIVE
    return ImportJob.objects.filter(state=ImportJob.State.WORKING, heartbeat_at__gt=alive_since).exists()
