"""Child processes that do not outlive us, and the orphans that others leave behind.

The kernel's help (a signal when the parent dies, adoption of orphans) exists on Linux only; elsewhere a killed
parent may leave children behind, a stopped one does not.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Container
from contextlib import suppress
from pathlib import Path

# <linux/prctl.h>
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def die_with_parent(signal_number: int = signal.SIGTERM) -> Callable[[], None]:
    """A `preexec_fn` that has the kernel send the signal to the child when we die, even by `kill -9`.

    The kernel watches the thread that forks: start children from the main thread only.
    """
    parent = os.getpid()

    def tie() -> None:
        if _LIBC is None:
            return
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
        if os.getppid() != parent:  # we died between the fork and the line above
            os._exit(1)

    return tie


def adopt_orphans() -> None:
    """From now on processes whose parent died become our children, where `orphans` finds them."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def orphans(*, ours: Container[int]) -> list[int]:
    """Process ids among our children that we did not start."""
    descendants: set[int] = set()
    for listing in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # the thread ended meanwhile
            descendants.update(map(int, listing.read_text().split()))
    return sorted(pid for pid in descendants if pid not in ours)


def end_orphans(*, ours: Container[int], patience: float = 0) -> None:
    """Ends what a dead child of ours left running: it has lost whoever supervised it.

    Without patience it is asked once (call again later); with patience it is killed when that is over.
    """
    deadline = time.monotonic() + patience
    signal_number = signal.SIGTERM
    while left := orphans(ours=ours):
        for pid in left:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal_number)
                os.waitpid(pid, os.WNOHANG)
        if not patience:
            return
        if time.monotonic() > deadline:
            signal_number = signal.SIGKILL
        time.sleep(0.05)


def stop(process: subprocess.Popen[bytes], *, signal_number: int = signal.SIGTERM, patience: float = 10) -> None:
    """Asks the process to end and kills it when it has not within so many seconds."""
    process.send_signal(signal_number)
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def left_in(folder: Path, *, program: str) -> list[int]:
    """Process ids of the program that works in the folder: those of a predecessor that has not ended yet."""
    return [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if _runs_in(entry, folder, program)]


def _runs_in(entry: Path, folder: Path, program: str) -> bool:
    try:
        return (entry / "comm").read_text().strip() == program and (entry / "cwd").readlink() == folder
    except OSError:  # it ended meanwhile, or it is another user's
        return False
