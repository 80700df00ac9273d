"""Connections that wait in the pool while the server ends them."""

from typing import Any
from unittest.mock import patch

import psycopg
import pytest
from django.db import connection

from annotator.postgresql.base import is_usable

pytestmark = pytest.mark.django_db(transaction=True)


def backend() -> int:
    """The process of the server that answers us, after our connection was back in the pool."""
    connection.close()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def end_others() -> None:
    with psycopg.connect(**connection.get_connection_params() | {"autocommit": True}) as another:
        another.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND datname = current_database() AND backend_type = 'client backend'"
        )


def test_a_connection_that_the_server_ended_costs_no_request() -> None:
    before = backend()
    connection.close()
    end_others()
    assert backend() != before


def test_a_quiet_connection_is_asked_nothing() -> None:
    backend()
    with patch.object(psycopg.Connection, "execute", side_effect=AssertionError("a round trip")):
        assert is_usable(connection.connection)


def test_a_connection_on_which_the_server_spoke_is_asked() -> None:
    backend()
    with connection.cursor() as cursor:
        cursor.execute("LISTEN here")
    with psycopg.connect(**connection.get_connection_params() | {"autocommit": True}) as another:
        another.execute("NOTIFY here")
    heard: list[Any] = []
    connection.connection.add_notify_handler(heard.append)
    assert is_usable(connection.connection)
    assert heard, "only a question reads what was said"
