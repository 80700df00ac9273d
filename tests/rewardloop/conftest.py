"""Clients over the whole server in this process: real requests and answers, without a socket and in one transaction.

While a client waits, the light worker works.
"""

import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx
import pytest
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections

from annotator.accounts import tokens
from annotator.infrastructure.background import heartbeats
from annotator.infrastructure.background.heartbeats import QueueHealth
from annotator.models import User
from annotator.outputs.exporting import export_jobs
from annotator.outputs.releases import release_jobs
from annotator.stages.importing import jobs as import_jobs
from rewardloop import Client
from rewardloop.command_line import logins, main
from rewardloop.command_line.logins import Login
from tests.conftest import Cast
from tests.hub import served_hub
from tests.rewardloop.scripted import Answer, Script

URL = "http://testserver"
As = Callable[[User], Client]


@pytest.fixture(autouse=True)
def _no_settings_of_ones_own(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    for name in ("REWARDLOOP_URL", "REWARDLOOP_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def transport() -> httpx.WSGITransport:
    return httpx.WSGITransport(get_wsgi_application(), remote_addr="127.0.0.1")


@pytest.fixture(autouse=True)
def _the_connection_stays() -> Iterator[None]:
    """The server's requests share the test's transaction, and must not close its connection at their end."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


@pytest.fixture(autouse=True)
def _workers_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker listens to each queue, and does what waits whenever a client waits."""
    health = {queue: QueueHealth(1, 0.0) for queue in heartbeats.QUEUES}
    monkeypatch.setattr(heartbeats, "listening", lambda: health)
    monkeypatch.setattr("rewardloop.connection.sleep", lambda _seconds: work())


def work() -> None:
    for jobs in (import_jobs, export_jobs, release_jobs):
        jobs.run_waiting()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The Hub as far as a test needs it."""
    with served_hub() as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        yield


def token_of(user: User) -> str:
    return tokens.issue(user)[1]


@pytest.fixture
def client_of(transport: httpx.WSGITransport) -> Iterator[As]:
    """A client that speaks for the user."""
    with ExitStack() as stack:
        yield lambda user: stack.enter_context(Client(URL, token_of(user), transport=transport))


@pytest.fixture
def carol(cast: Cast, client_of: As) -> Client:
    return client_of(cast.carol)


@pytest.fixture
def alice(cast: Cast, client_of: As) -> Client:
    return client_of(cast.alice)


# The command --------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Done:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Done]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], transport: httpx.WSGITransport) -> Run:
    """Gives a command; `typed` are the lines that somebody types, or that stand on standard input."""
    monkeypatch.setattr("rewardloop.command_line.logins.Client", partial(Client, transport=transport))

    def given(*words: str, typed: Sequence[str] = ()) -> Done:
        stdin = io.TextIOWrapper(io.BytesIO("".join(f"{line}\n" for line in typed).encode()))
        monkeypatch.setattr(sys, "stdin", stdin)
        capsys.readouterr()
        code = main(words)
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return given


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch, run: Run) -> Callable[..., Script]:
    """Puts a server in the place of ours that answers by a script."""

    def answering(*answers: Answer) -> Script:
        script = Script(list(answers))
        transport = httpx.MockTransport(script)
        monkeypatch.setattr("rewardloop.command_line.logins.Client", partial(Client, transport=transport))
        monkeypatch.setattr("rewardloop.connection.sleep", lambda _seconds: None)
        monkeypatch.setenv("REWARDLOOP_URL", URL)
        monkeypatch.setenv("REWARDLOOP_TOKEN", "t")
        return script

    return answering


def logged_in(user: User) -> None:
    logins.store(Login(URL, token_of(user)))


@pytest.fixture
def as_carol(cast: Cast) -> None:
    logged_in(cast.carol)


@pytest.fixture
def as_alice(cast: Cast) -> None:
    logged_in(cast.alice)
