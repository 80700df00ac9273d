"""Child processes that do not outlive us.

The kernel's help, a signal when the parent dies, exists on Linux only; elsewhere a killed parent may leave children
behind, a stopped one does not.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile, or it is another user's
            if (entry / "comm").read_text().strip() == program and (entry / "cwd").readlink() == folder:
                found.append(int(entry.name))
    return found


START_SECONDS = 60
_PREDECESSOR_SECONDS = 20
_TAIL_BYTES = 100_000


class ServiceFailed(Exception):
    """PostgreSQL or Redis cannot be started here; the message says why in a sentence."""


@dataclass
class Process:
    """A server's process and its log. `title` is what people call the server."""

    title: str
    log: Path
    directory: Path
    running: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return self.running.pid if self.running else None

    def launch(self, command: Sequence[str], *, dies_by: int, text: bytes = b"", **credentials: Any) -> None:
        """Starts the command, which reads the text and gets the signal `dies_by` when we are killed."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self.running = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                # Ctrl-C reaches a whole group: out of ours, the servers end after those who use them.
                start_new_session=True,
                preexec_fn=die_with_parent(dies_by),
                **credentials,
            )
        assert self.running.stdin is not None
        # A broken pipe: it has ended already, and `check_alive` says why.
        with suppress(BrokenPipeError), self.running.stdin as stdin:
            stdin.write(text)

    def alive(self) -> bool:
        return self.running is not None and self.running.poll() is None

    def check_alive(self) -> None:
        """Raises ServiceFailed with the server's own last words unless its process is running."""
        if not self.alive():
            raise ServiceFailed(f"{self.title} did not start: {self.last_words()} (its log is {self.log})")

    def last_words(self) -> str:
        """Returns the server's own last words, from the end of its log."""
        try:
            with self.log.open("rb") as log:
                # The log grows for as long as the installation lives: only its end is read into memory.
                log.seek(max(log.seek(0, os.SEEK_END) - _TAIL_BYTES, 0))
                return last_words(log.read().decode(errors="replace"))
        except OSError as error:
            return f"its log cannot be read: {error.strerror}"

    def wait_for(self, is_ready: Callable[[], bool]) -> None:
        """Waits until the server answers. Raises ServiceFailed if it has ended, or does not within START_SECONDS."""
        deadline = time.monotonic() + START_SECONDS
        while not is_ready():
            self.check_alive()
            if time.monotonic() > deadline:
                raise ServiceFailed(f"{self.title} does not answer after {START_SECONDS} s (its log is {self.log})")
            time.sleep(0.03)

    def stop(self, *, signal_number: int, patience: float) -> None:
        if self.running is not None and self.alive():
            stop(self.running, signal_number=signal_number, patience=patience)

    def end_predecessor(self, program: str) -> None:
        """Waits for the server that a killed parent left here, as two on one folder would spoil the data.

        The kernel told it to end when the parent died; after some seconds it is killed.
        """
        deadline = time.monotonic() + _PREDECESSOR_SECONDS
        while pids := left_in(self.directory.resolve(), program=program):
            if time.monotonic() > deadline:
                for pid in pids:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)


def last_words(output: str) -> str:
    """Returns the last line that names an error, without its time stamp; else the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for line in reversed(lines):
        for word in ("FATAL:", "PANIC:", "error:", "# "):  # the last one is Redis's mark of a warning
            if word in line:
                return line[line.index(word) :]
    return lines[-1] if lines else "it printed nothing"
