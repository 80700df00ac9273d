"""Keeps a set of processes running: restarts what dies, keeps their logs, ends them in order.

One thread and one loop, as the kernel ends a child when the thread that started it ends.
"""

import logging
import os
import selectors
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from logging.handlers import RotatingFileHandler
from pathlib import Path

from annotator.launch import child_processes
from annotator.launch.embedded import Postgres, Redis, ServiceFailed

_LONGEST_LINE = 1 << 16
_LOG_BYTES = 10_000_000
_LINE_WIDTH = 160
# What the terminal shows of a log; the file has all of it.
_NOTABLE = ("WARNING", "ERROR", "CRITICAL")
_LONGEST_PAUSE = 30
_LONG_LIFE = 60
_STOP_SECONDS = 8


@dataclass(frozen=True)
class Command:
    """A process of the product, by the words that start it."""

    name: str
    line: str


def say(name: str, text: str) -> None:
    with suppress(OSError):  # a terminal that is gone, or a file on a full disk, is no reason to end
        print(f"{name:<8} | {text:.{_LINE_WIDTH}}", flush=True)


class LogFile(RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Nothing: the product can do without its log while the disk is full."""


@dataclass
class Restarts:
    """Starts a process again for as long as it takes.

    The pause between tries doubles from failure to failure, and starts over after a try that lasted long. `start` may
    raise ServiceFailed or OSError; `ending` says in words how the process ended.
    """

    name: str
    alive: Callable[[], bool]
    start: Callable[[], None]
    ending: Callable[[], str]
    failures: int = 0
    began_at: float = field(default_factory=time.monotonic)
    again_at: float | None = None

    def revive(self) -> None:
        """Starts it again if it has died and its pause is over. Called in every round of the loop."""
        if self.alive():
            return
        if self.again_at is None:
            self._fail(self.ending())
        elif time.monotonic() >= self.again_at:
            self.began_at, self.again_at = time.monotonic(), None
            try:
                self.start()
            except (ServiceFailed, OSError) as failed:  # a full disk or no memory now; there may be some later
                self._fail(str(failed))

    def _fail(self, words: str) -> None:
        lived = time.monotonic() - self.began_at
        self.failures = 0 if lived > _LONG_LIFE else self.failures + 1
        # The exponent is capped as well: after days of failures the power would overflow the float.
        pause = float(min(2 ** min(self.failures, 10) / 2, _LONGEST_PAUSE))
        self.again_at = time.monotonic() + pause
        say(self.name, f"died, is started again in {pause:.0f} s: {words}")


class Child:
    """One running command and its log."""

    def __init__(
        self,
        command: Command,
        *,
        environment: Mapping[str, str],
        root: Path,
        log: Path,
        outputs: selectors.BaseSelector,
    ) -> None:
        self.command, self.environment, self.root, self.log = command, environment, root, log
        self.process: subprocess.Popen[bytes] | None = None
        self._outputs = outputs
        self._unfinished = b""
        self._file = LogFile(log, maxBytes=_LOG_BYTES, backupCount=1, delay=True)

    def start(self) -> None:
        self._forget()
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
        if self.process.stdout:
            self._outputs.register(self.process.stdout, selectors.EVENT_READ, self)

    def read(self) -> None:
        """Takes over what the process has written."""
        if not self.process or not self.process.stdout:
            return
        # One read, not until the end: there may be nothing more now, and it would wait for the next line.
        data = os.read(self.process.stdout.fileno(), 65536)
        *lines, self._unfinished = (self._unfinished + data).split(b"\n")
        # A progress bar, which ends no line, must not fill the memory.
        self._unfinished = self._unfinished[-_LONGEST_LINE:]
        for line in (line.decode(errors="replace").rstrip() for line in lines):
            self._file.handle(logging.makeLogRecord({"msg": line}))
            if any(word in line for word in _NOTABLE):
                say(self.command.name, line)
        if not data:
            self._forget()

    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def ending(self) -> str:
        self.kill_group()
        code = self.process.returncode if self.process else 0
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"{how} (its log is {self.log})"

    def terminate(self) -> None:
        if self.process:
            self.process.terminate()

    def kill_group(self) -> None:
        """Ends the process and those that it has started, whom nobody would supervise any more."""
        if self.process:
            with suppress(ProcessLookupError, PermissionError):  # there is nobody; macOS says so by the second
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def _forget(self) -> None:
        # A pipe at its end is always readable: left in the selector, it would make the loop spin.
        if self.process and self.process.stdout and not self.process.stdout.closed:
            self._outputs.unregister(self.process.stdout)
            self.process.stdout.close()


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
        self._outputs = selectors.DefaultSelector()
        self.children = [
            Child(command, environment=environment, root=root, log=logs / f"{command.name}.log", outputs=self._outputs)
            for command in commands
        ]
        # The servers have been started by somebody else, who will stop them.
        self._kept = [
            *(Restarts(one.name, one.process.alive, one.relaunch, one.process.last_words) for one in servers),
            *(Restarts(child.command.name, child.alive, child.start, child.ending) for child in self.children),
        ]

    def start(self) -> None:
        for child in self.children:
            child.start()

    def turn(self, seconds: float) -> None:
        """Goes one round: reads output for at most so long, then starts again what has died, however often."""
        # Reading is not only for the log: a pipe that nobody empties fills up and stops its writer.
        self._read(seconds)
        for kept in self._kept:
            kept.revive()

    def stop(self) -> None:
        """Asks all commands at once to end, and kills those that have not after some seconds. The servers stay."""
        running = [child for child in self.children if child.alive()]
        for child in running:
            child.terminate()
        deadline = time.monotonic() + _STOP_SECONDS
        while any(child.alive() for child in running) and time.monotonic() < deadline:
            self._read(0.1)  # else a process that still has much to say could not end
        for child in running:
            child.kill_group()

    def _read(self, seconds: float) -> None:
        for key, _ in self._outputs.select(seconds):
            key.data.read()
