"""Keeps a set of processes running: restarts what dies, keeps their logs, ends them in order.

One thread and one loop, as the kernel ends a child when the thread that started it ends.
"""

import logging
import math
import os
import selectors
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import IO

from annotator.launch import child_processes
from annotator.launch.embedded import Postgres, Redis, ServiceFailed

_LONGEST_LINE = 1 << 16
_LOG_BYTES = 10_000_000
_LINE_WIDTH = 160
# What the terminal shows of a log; the file has all of it.
_NOTABLE = ("WARNING", "ERROR", "CRITICAL")
_LONGEST_PAUSE = 30
_COMPLAINT_SECONDS = 60
_LONG_LIFE = 60
_STOP_SECONDS = 8
# A server that has lived so long after a failure is not going to fail for the same reason.
_BACK_SECONDS = 5


@dataclass(frozen=True)
class Command:
    """A process of the product, by the words that start it."""

    name: str
    line: str


def say(name: str, text: str) -> None:
    with suppress(OSError):  # a terminal that is gone, or a file on a full disk, is no reason to end
        print(f"{name:<8} | {text:.{_LINE_WIDTH}}", flush=True)


@dataclass
class Patience:
    """The pause between tries: it doubles from failure to failure, and starts over after a try that lasted long."""

    failures: int = 0
    began_at: float = -math.inf
    again_at: float | None = None

    def begin(self) -> None:
        self.began_at, self.again_at = time.monotonic(), None

    def fail(self) -> float:
        """Counts a failure, and returns the seconds until the next try."""
        lived = time.monotonic() - self.began_at
        self.failures = 0 if lived > _LONG_LIFE else self.failures + 1
        # The exponent is capped as well: after days of failures the power would overflow the float.
        pause = float(min(2 ** min(self.failures, 10) / 2, _LONGEST_PAUSE))
        self.again_at = time.monotonic() + pause
        return pause

    def is_over(self) -> bool:
        return self.again_at is not None and time.monotonic() >= self.again_at


class LogFile(RotatingFileHandler):
    """A log file that the product can do without: when the disk is full it complains on the terminal now and then."""

    complained_at = -math.inf

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        if time.monotonic() - self.complained_at > _COMPLAINT_SECONDS:
            self.complained_at = time.monotonic()
            say("log", f"{self.baseFilename} cannot be written: {sys.exc_info()[1]}")


class Child:
    """One running command and its log."""

    def __init__(self, command: Command, *, environment: Mapping[str, str], root: Path, log: Path) -> None:
        self.command = command
        self.environment = environment
        self.root = root
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None
        self.patience = Patience()
        self._unfinished = b""
        self._file = LogFile(log, maxBytes=_LOG_BYTES, backupCount=1, delay=True)

    def start(self) -> None:
        self.patience.begin()
        # What the last process left unfinished would stand before the first line of this one.
        self._unfinished = b""
        self.process = subprocess.Popen(
            shlex.split(self.command.line),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.root,
            env=self.environment,
            # Ctrl-C reaches a whole group: out of ours, we choose the order in which they end.
            start_new_session=True,
            preexec_fn=child_processes.die_with_parent(signal.SIGKILL),
        )

    @property
    def output(self) -> IO[bytes] | None:
        return self.process.stdout if self.process else None

    def read(self, output: IO[bytes]) -> bool:
        """Takes over what the process has written; returns False when it will write no more."""
        # One read, not until the end: there may be nothing more now, and it would wait for the next line.
        data = os.read(output.fileno(), 65536)
        *lines, self._unfinished = (self._unfinished + data).split(b"\n")
        # A progress bar, which ends no line, must not fill the memory.
        self._unfinished = self._unfinished[-_LONGEST_LINE:]
        for line in (line.decode(errors="replace").rstrip() for line in lines):
            self._file.handle(logging.makeLogRecord({"msg": line}))
            if any(word in line for word in _NOTABLE):
                say(self.command.name, line)
        return bool(data)

    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def ending(self) -> str:
        """Says in words how the process ended."""
        code = self.process.returncode if self.process else 0
        return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"


class Watched:
    """A server that is started again for as long as it takes, with what it says on the terminal about that."""

    def __init__(self, server: Postgres | Redis) -> None:
        self.server = server
        self.patience = Patience(began_at=time.monotonic())
        self.complained_at = -math.inf

    def revive(self) -> None:
        """Starts the server again if it has died and its pause is over. Called in every round of the loop."""
        if self.server.process.alive():
            if self.complained_at > -math.inf and time.monotonic() - self.patience.began_at > _BACK_SECONDS:
                self.complained_at = -math.inf
                say(self.server.name, "is back")
        elif self.patience.again_at is None:
            self._complain(self.server.process.last_words(), self.patience.fail())
        elif self.patience.is_over():
            self.patience.begin()
            try:
                self.server.relaunch()
            except (ServiceFailed, OSError) as failed:
                # A full disk or no memory now; there may be some later.
                self._complain(str(failed), self.patience.fail())

    def _complain(self, words: str, pause: float) -> None:
        """Says that the server has died; once a minute at most, as the tries may go on for days."""
        if time.monotonic() - self.complained_at > _COMPLAINT_SECONDS:
            self.complained_at = time.monotonic()
            say(self.server.name, f"died, is started again in {pause:.0f} s and until it stays: {words}")


class Supervisor:
    """Keeps the commands running, and the servers that they need."""

    def __init__(
        self,
        commands: Iterable[Command],
        *,
        servers: Sequence[Postgres | Redis],
        environment: Mapping[str, str],
        root: Path,
        logs: Path,
    ) -> None:
        logs.mkdir(parents=True, exist_ok=True)
        self.servers = [Watched(server) for server in servers]
        self.children = [
            Child(command, environment=environment, root=root, log=logs / f"{command.name}.log") for command in commands
        ]
        self._outputs = selectors.DefaultSelector()
        # Nothing is adopted yet: these were started by others in this process, who look after them.
        self._of_others = frozenset(child_processes.orphans(ours=()))

    def start(self) -> None:
        child_processes.adopt_orphans()
        for child in self.children:
            self._start(child)

    def turn(self, seconds: float) -> None:
        """Goes one round: reads output for at most so long, then starts again what has died, however often."""
        # Reading is not only for the log: a pipe that nobody empties fills up and stops its writer.
        self._read(seconds)
        child_processes.end_orphans(ours=self._pids())
        for server in self.servers:
            server.revive()
        for child in self.children:
            self._revive(child)

    def stop(self) -> None:
        """Asks all commands at once to end, and kills those that have not after some seconds. The servers stay."""
        running = [child.process for child in self.children if child.process and child.alive()]
        for process in running:
            process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + _STOP_SECONDS
        while any(process.poll() is None for process in running) and time.monotonic() < deadline:
            self._read(0.1)  # else a process that still has much to say could not end
        for process in running:
            process.kill()
            process.wait()
        child_processes.end_orphans(ours=self._pids(), patience=_STOP_SECONDS)

    def _start(self, child: Child) -> None:
        self._forget(child)
        child.start()
        if child.output:
            self._outputs.register(child.output, selectors.EVENT_READ, child)

    def _revive(self, child: Child) -> None:
        if child.alive():
            return
        if child.patience.again_at is None:
            pause = child.patience.fail()
            say(child.command.name, f"{child.ending()}, starts again in {pause:.0f} s (its log is {child.log})")
        elif child.patience.is_over():
            try:
                self._start(child)
            except OSError as failed:  # no memory, no process to be had: later there may be
                say(child.command.name, f"cannot be started now: {failed}")
                child.patience.fail()

    def _read(self, seconds: float) -> None:
        for key, _ in self._outputs.select(seconds):
            child: Child = key.data
            if child.output and not child.read(child.output):
                self._forget(child)

    def _forget(self, child: Child) -> None:
        # A pipe at its end is always readable: left in the selector, it would make the loop spin.
        if child.output and not child.output.closed:
            self._outputs.unregister(child.output)
            child.output.close()

    def _pids(self) -> frozenset[int]:
        processes = [child.process for child in self.children] + [
            server.server.process.running for server in self.servers
        ]
        return self._of_others.union(process.pid for process in processes if process)
