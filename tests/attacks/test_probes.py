"""Health is answered while nothing else is, and to whoever asks, by whatever name."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from django.db import connection, transaction
from django.test import Client

from annotator.accounts import tokens
from tests.conftest import Cast
from tests.web import Web, web

LIVE, READY = "/api/v1/health/live/", "/api/v1/health/ready/"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, django_db_setup: None) -> Iterator[Web]:
    with web(tmp_path_factory.mktemp("web")) as made:
        yield made


@contextmanager
def locked_accounts() -> Iterator[None]:
    """Whoever asks with a token waits for a table."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("LOCK TABLE annotator_user IN ACCESS EXCLUSIVE MODE")
        yield


@pytest.fixture
def asks(cast: Cast) -> bytes:
    token = tokens.issue(cast.carol)[1]
    return f"GET /api/v1/me/ HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Api-Key: {token}\r\n\r\n".encode()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_it_is_alive_while_every_thread_waits_for_the_database(server: Web, asks: bytes) -> None:
    with ExitStack() as stack:
        waiting = [stack.enter_context(server.connect()) for _ in range(40)]
        with locked_accounts():
            for client in waiting:
                client.sendall(asks)
            assert max(server.seconds_for(LIVE, timeout=5) for _ in range(8)) < 1
        assert all(client.recv(12) == b"HTTP/1.1 200" for client in waiting)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_locked_table_costs_a_request_seconds_and_not_its_thread(server: Web, asks: bytes) -> None:
    with server.connect(timeout=30) as opened, locked_accounts():
        opened.sendall(asks)
        assert opened.recv(12) == b"HTTP/1.1 503"


@pytest.mark.django_db
@pytest.mark.parametrize("host", ["10.1.2.3:8000", "[fd00::1]:8000", "balancer.internal"])
def test_a_probe_may_ask_by_any_name(host: str) -> None:
    assert Client(headers={"host": host}).get(LIVE).status_code == 200
    assert Client(headers={"host": host}).get(READY).status_code in (200, 503)
    assert Client(headers={"host": host}).get("/api/v1/me/").status_code == 400
