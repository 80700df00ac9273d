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
    """Returns a `preexec_fn` that has the kernel send the signal to the child when we die, even by `kill -9`.

    The kernel watches the thread that forks: start children from the main thread only.
    """
    parent = os.getpid()

    def tie() -> None:
        if _LIBC is None:
            return
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
        # We may have died between the fork and the line above: then no signal will ever come. `_exit` rather than
        # `sys.exit`, as the child of a fork must not run the parent's clean-up.
        if os.getppid() != parent:
            os._exit(1)

    return tie


def adopt_orphans() -> None:
    """Makes processes whose parent dies our children, where `orphans` finds them; without it they go to init."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def orphans(*, ours: Container[int]) -> list[int]:
    """Returns the process ids of those of our children that are not in `ours`."""
    children: set[int] = set()
    # The kernel lists children by the thread that started or adopted them.
    for listing in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # the thread ended meanwhile
            children.update(map(int, listing.read_text().split()))
    return sorted(pid for pid in children if pid not in ours)


def end_orphans(*, ours: Container[int], patience: float = 0) -> None:
    """Ends the processes that a dead child of ours left running, as nobody supervises them any more.

    Without patience each is asked once to end, and the caller calls again later; with patience each is killed after so
    many seconds.
    """
    deadline = time.monotonic() + patience
    signal_number = signal.SIGTERM
    while pids := orphans(ours=ours):
        for pid in pids:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal_number)
                # A zombie stays in the kernel's list of children until it is reaped: this loop would not end.
                os.waitpid(pid, os.WNOHANG)
        if not patience:
            return
        if time.monotonic() > deadline:
            signal_number = signal.SIGKILL
        time.sleep(0.05)


def stop(process: subprocess.Popen[bytes], *, signal_number: int = signal.SIGTERM, patience: float = 10) -> None:
    """Asks the process to end, and kills it if it is still there after so many seconds of patience."""
    process.send_signal(signal_number)
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def left_in(folder: Path, *, program: str) -> list[int]:
    """Returns the ids of the processes of the program that work in the folder: predecessors that have not ended yet.

    Without /proc, on macOS, there are none to find.
    """
    return [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if _runs_in(entry, folder, program)]


def _runs_in(entry: Path, folder: Path, program: str) -> bool:
    try:
        return (entry / "comm").read_text().strip() == program and (entry / "cwd").readlink() == folder
    except OSError:  # it ended meanwhile, or it is another user's
        return False
