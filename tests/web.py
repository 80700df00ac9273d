"""The web as `make run` starts it, over the tests' database and Redis."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from annotator.launch import child_processes
from annotator.launch.run import COMMANDS, ROOT
from tests.celery_workers import environment, wait_for

WEB = next(command.line for command in COMMANDS if command.name == "web").split()
PROGRAM = str(Path(sys.executable).parent)


@dataclass(frozen=True)
class Web:
    """A running server, and where its temporary files would go."""

    port: int
    process: "subprocess.Popen[bytes]"
    temporary: Path
    log: Path

    def connect(self, timeout: float = 20) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def get(self, path: str, *, timeout: float = 20) -> tuple[int, bytes]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=timeout) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def seconds_for(self, path: str, *, timeout: float = 20) -> float:
        """How long an answer takes that is well."""
        began = time.monotonic()
        assert self.get(path, timeout=timeout)[0] == 200
        return time.monotonic() - began

    def answers(self) -> bool:
        try:
            return self.get("/api/v1/health/live/", timeout=5)[0] == 200
        except OSError:
            return False

    def workers(self) -> list[int]:
        lists = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(pid) for children in lists for pid in children.read_text().split()]


def free_port() -> int:
    """Below those that the system gives to whoever asks for any, so that nobody takes it meanwhile."""
    while True:
        port = random.randrange(20_000, 30_000)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port


@contextmanager
def web(folder: Path, **variables: str) -> Iterator[Web]:
    """Answers when it is yielded, and is gone afterwards."""
    port, temporary, log = free_port(), folder / "temporary", folder / "web.log"
    for place in (temporary, folder / "static"):
        place.mkdir(exist_ok=True)
    ours = {"PORT": str(port), "TMPDIR": str(temporary), "PATH": f"{PROGRAM}{os.pathsep}{os.environ['PATH']}"}
    ours |= {"PYTHONPATH": str(ROOT), "DEBUG": "1", "WEB_PROCESSES": "2", "WEB_THREADS": "4"}
    with log.open("ab") as output:
        process = subprocess.Popen(
            WEB,
            env=environment(folder, **{**ours, **variables}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=ROOT,
            start_new_session=True,
            preexec_fn=child_processes.die_with_parent(signal.SIGKILL),
        )
    made = Web(port, process, temporary, log)
    try:
        wait_for(made.answers, what="the web")
        yield made
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
