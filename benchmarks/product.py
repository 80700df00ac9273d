"""Runs all processes of `make run` over a PostgreSQL and a Redis of their own, and somebody's browser beside them.

Both servers write to the disk as they do in use: one that skips that, as the tests' does, would flatter the numbers.
"""

import http.client
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from annotator.launch import child_processes
from annotator.launch.embedded import services
from annotator.launch.install import ROOT
from annotator.launch.run import COMMANDS, process_environment, still_missing
from annotator.launch.supervisor import Command

PORT = 8930
PATIENCE_SECONDS = 60
PASSWORD = "correct horse battery"


@contextmanager
def database(kept: Path | None = None) -> Iterator[Path]:
    """Starts the servers, sets the environment, sets Django up and migrates the database.

    Their data lies in a temporary folder, or in one that is kept, and may be there already.
    """
    with ExitStack() as stack:
        if kept:
            folder = kept.resolve()
            folder.mkdir(exist_ok=True)
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rewardloop-bench-")))
        folder.chmod(0o711)  # PostgreSQL's account has to pass through
        with services(folder) as started:
            os.environ.update(process_environment(started, folder) | {"SECRET_KEY": "bench-" * 10, "PORT": str(PORT)})
            os.environ.setdefault("DJANGO_SETTINGS_MODULE", "annotator.settings")
            from annotator.launch.prepare import main as prepare  # after the environment: it reads the settings

            prepare([])
            yield folder


@contextmanager
def running() -> Iterator[str]:
    """Starts the product by the lines of `make run`; yields the web's address once every process is at work."""
    with ExitStack() as processes:
        for command in COMMANDS:
            processes.enter_context(process(command))
        address = f"http://127.0.0.1:{PORT}"
        _wait_until_ready(address)
        yield address


@contextmanager
def process(command: Command) -> Iterator[None]:
    """Runs one of the processes of `make run`."""
    logs = Path(os.environ["VAR_DIR"]) / "logs"
    logs.mkdir(exist_ok=True)
    with (logs / f"{command.name}.log").open("ab") as log:
        started = subprocess.Popen(
            command.line.split(),
            stdout=log,
            stderr=log,
            cwd=ROOT,
            start_new_session=True,
            # Else the product of a benchmark that was killed would go on, and slow the next one down.
            preexec_fn=child_processes.die_with_parent(),
        )
    try:
        yield
    finally:
        child_processes.stop(started, patience=PATIENCE_SECONDS)


def _wait_until_ready(address: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while missing := still_missing(address):
        if time.monotonic() > deadline:
            raise TimeoutError(missing)
        time.sleep(0.1)


@dataclass
class Visitor:
    """Somebody who has logged in, over one connection."""

    address: str
    name: str
    cookies: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(self.address).netloc)
        page = self.request("GET", "/login/")[1]
        self.request("POST", "/login/", {"username": self.name, "password": PASSWORD, **self.token(page)})

    def request(self, method: str, path: str, form: dict[str, str] | None = None) -> tuple[int, str]:
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        headers |= {"HX-Request": "true"} if form and "active_seconds" in form else {}
        headers |= {"Content-Type": "application/x-www-form-urlencoded"} if form else {}
        try:
            self.connection.request(method, path, urlencode(form) if form else None, headers)
            answer = self.connection.getresponse()
        except ConnectionError:
            # The server closes a connection that nobody has used for a while; the next request opens another one.
            self.connection.close()
            self.connection.request(method, path, urlencode(form) if form else None, headers)
            answer = self.connection.getresponse()
        text = answer.read().decode()
        for cookie in answer.headers.get_all("Set-Cookie", []):
            name, value = cookie.split(";")[0].split("=", 1)
            self.cookies[name] = value
        return answer.status, text

    @staticmethod
    def token(page: str) -> dict[str, str]:
        match = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        return {"csrfmiddlewaretoken": match.group(1)} if match else {}
