"""One server's process, which writes to a log file, works in its own folder, and ends when we do."""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from annotator.launch import child_processes
from annotator.launch.embedded.accounts import Account, as_account

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

    def launch(
        self, command: Sequence[str], *, dies_by: int, text: bytes = b"", account: Account | None = None
    ) -> None:
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
                preexec_fn=child_processes.die_with_parent(dies_by),
                **as_account(account),
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

    def stop(self, *, signal_number: int, patience: float) -> None:
        if self.running is not None and self.alive():
            child_processes.stop(self.running, signal_number=signal_number, patience=patience)

    def end_predecessor(self, program: str) -> None:
        """Waits for the server that a killed parent left here, as two on one folder would spoil the data.

        The kernel told it to end when the parent died; after some seconds it is killed.
        """
        deadline = time.monotonic() + _PREDECESSOR_SECONDS
        while pids := child_processes.left_in(self.directory.resolve(), program=program):
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
