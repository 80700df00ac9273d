"""Strangers who send slowly, or read slowly, take nothing from anybody else. A real server process answers."""

import os
import re
import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from annotator.accounts import tokens
from annotator.launch.webserver import channel
from annotator.models import Project, Response
from tests.builders import claimed, make_task, rate
from tests.celery_workers import wait_for
from tests.conftest import Cast
from tests.web import Web, web

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
LIVE = "/api/v1/health/live/"
SLOW_HEADER = b"GET /login/ HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
SLOW_BODY = (
    b"POST /login/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    b"Content-Length: 2000\r\n\r\nusername="
)
PATIENCE = 8
"""Seconds that a busy machine may add to a deadline."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, django_db_setup: None) -> Iterator[Web]:
    with web(tmp_path_factory.mktemp("web")) as made:
        yield made


@contextmanager
def slow_sockets(server: Web, number: int) -> Iterator[list[socket.socket]]:
    """Half of them stop within their headers, half within their bodies."""
    with ExitStack() as stack:
        opened = [stack.enter_context(server.connect()) for _ in range(number)]
        for place, client in enumerate(opened):
            client.sendall(SLOW_BODY if place % 2 else SLOW_HEADER)
        yield opened


def test_with_two_hundred_slow_sockets_health_is_answered_within_a_second(server: Web) -> None:
    with slow_sockets(server, 200):
        times = [server.seconds_for(LIVE, timeout=10) for _ in range(10)]
    assert max(times) < 1


def test_with_two_hundred_slow_sockets_pages_are_answered(server: Web) -> None:
    with slow_sockets(server, 200):
        times = [server.seconds_for("/login/", timeout=10) for _ in range(5)]
    assert max(times) < 2


# Deadlines -------------------------------------------------------------------------------------------------


def seconds_until_closed(server: Web, first: bytes, *, most: float) -> float:
    """How long the server lets somebody go on who sends a byte each half second."""
    began = time.monotonic()
    with server.connect() as opened:
        opened.settimeout(0.5)
        opened.sendall(first)
        while time.monotonic() - began < most:
            try:
                if not opened.recv(1):
                    break
            except TimeoutError:
                pass
            except OSError:
                break
            try:
                opened.sendall(b"x" if first else b"")
            except OSError:
                break
    return time.monotonic() - began


def test_what_trickles_in_is_closed_at_its_deadline(server: Web) -> None:
    deadlines = {b"": channel.HEADER_SECONDS, SLOW_HEADER: channel.HEADER_SECONDS, SLOW_BODY: channel.BODY_SECONDS}
    with ThreadPoolExecutor(len(deadlines)) as pool:
        times = list(pool.map(lambda first: seconds_until_closed(server, first, most=60), deadlines))
    for seconds, deadline in zip(times, deadlines.values(), strict=True):
        assert deadline - 1 < seconds < deadline + PATIENCE


# Slow readers ----------------------------------------------------------------------------------------------


@pytest.fixture
def large_export(project: Project, cast: Cast) -> bytes:
    """The request for an export of 24 MB, more than the sockets' buffers hold."""
    for number in range(12):
        made = make_task(project, f"t{number}")
        rate(project, cast.alice)
        Response.objects.filter(task=made).update(text="x" * 1_000_000)
    token = tokens.issue(cast.carol)[1]
    path = "/api/v1/projects/talk/export/?layout=disagreements"
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Api-Key: {token}\r\nConnection: close\r\n\r\n".encode()


@contextmanager
def stalled(server: Web, request: bytes, number: int) -> Iterator[list[socket.socket]]:
    """Downloads of which nobody reads more than the beginning."""
    with ExitStack() as stack:
        opened = []
        for _ in range(number):
            made = stack.enter_context(socket.socket())
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            made.settimeout(60)
            made.connect(("127.0.0.1", server.port))
            made.sendall(request)
            opened.append(made)
        assert opened[0].recv(12) == b"HTTP/1.1 200"
        yield opened


def whole_answer(server: Web, request: bytes) -> bytes:
    with server.connect(timeout=60) as opened:
        opened.sendall(request)
        return b"".join(iter(lambda: opened.recv(2**20), b""))


def test_stalled_downloads_take_no_thread_from_pages(server: Web, large_export: bytes) -> None:
    with stalled(server, large_export, 10):
        time.sleep(1)
        assert max(server.seconds_for("/login/", timeout=10) for _ in range(5)) < 2
        assert server.seconds_for(LIVE, timeout=10) < 1


def test_stalled_downloads_are_dropped(server: Web, large_export: bytes) -> None:
    with stalled(server, large_export, 4):
        began = time.monotonic()
        answer = whole_answer(server, large_export)
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b"0\r\n\r\n")
    assert len(answer) > 24_000_000
    assert time.monotonic() - began < channel.READ_SECONDS + 3 * PATIENCE


# The processes ---------------------------------------------------------------------------------------------


def sockets(pid: int, port: int) -> int:
    """Connections to the port that the process holds."""
    there = re.compile(rf" [0-9A-F]+:{port:04X} [0-9A-F]+:[0-9A-F]+ 01 (?:\S+ ){{5}} *(\d+)")
    inodes = {f"socket:[{inode}]" for inode in there.findall(" ".join(Path("/proc/net/tcp").read_text().split()))}
    return sum(str(link.readlink()) in inodes for link in Path(f"/proc/{pid}/fd").iterdir())


def test_kept_connections_are_spread_evenly(server: Web) -> None:
    with ExitStack() as stack:
        for _ in range(20):
            opened = stack.enter_context(server.connect())
            opened.sendall(f"GET {LIVE} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            assert opened.recv(12) == b"HTTP/1.1 200"
        held = [sockets(pid, server.port) for pid in server.workers()]
    assert sum(held) >= 20
    assert max(held) - min(held) <= 4


def test_a_killed_process_is_replaced_and_the_other_answers_meanwhile(server: Web) -> None:
    before = server.workers()
    os.kill(before[0], signal.SIGKILL)
    assert Counter(server.get(LIVE, timeout=10)[0] for _ in range(5)) == {200: 5}
    wait_for(lambda: len(server.workers()) == 2 and before[0] not in server.workers(), what="another process")


def test_an_answer_without_a_body_leaves_the_connection_open(server: Web, project: Project, cast: Cast) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    token = tokens.issue(cast.alice)[1]
    head = f" HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Api-Key: {token}\r\n\r\n"
    with server.connect() as opened:
        opened.sendall(f"DELETE /api/v1/assignments/{held.pk}/{head}".encode())
        answer = opened.recv(65536)
        assert answer.startswith(b"HTTP/1.1 204 ")
        assert b"connection: close" not in answer.lower()
        opened.sendall(f"GET /api/v1/me/{head}".encode())
        assert opened.recv(12) == b"HTTP/1.1 200"


def somebody_waits(cursor: CursorWrapper) -> bool:
    cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
    return bool((cursor.fetchone() or [False])[0])


def test_it_ends_in_peace_with_a_request_under_way(tmp_path: Path, cast: Cast) -> None:
    """The list of projects waits for a lock, and is answered although the server was told to end meanwhile."""
    token = tokens.issue(cast.carol)[1]
    with web(tmp_path) as made, made.connect() as opened:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE annotator_project IN ACCESS EXCLUSIVE MODE")
            opened.sendall(f"GET /api/v1/projects/ HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Api-Key: {token}\r\n\r\n".encode())
            wait_for(lambda: somebody_waits(cursor), what="the request")
            made.process.terminate()
            time.sleep(1)
        assert opened.recv(12) == b"HTTP/1.1 200"
        assert made.process.wait(10) == 0
    assert "Traceback" not in made.log.read_text()
