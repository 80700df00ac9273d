"""Child processes that do not outlive us.

The kernel's help, a signal when the parent dies, exists on Linux only; elsewhere a killed parent may leave children
behind, a stopped one does not.
"""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

# <linux/prctl.h>
_PR_SET_PDEATHSIG = 1

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
