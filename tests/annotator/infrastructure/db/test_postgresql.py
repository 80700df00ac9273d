"""Connections that wait in the pool while the server ends them."""

import os
import subprocess
import sys
import time
from copy import deepcopy
from pathlib import Path
from select import select
from typing import Any
from unittest.mock import patch

import psycopg
import pytest
from django.db import OperationalError, connection

from annotator.infrastructure.db.postgresql.base import DatabaseWrapper, is_usable
from annotator.launch.install import ROOT

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


@pytest.mark.slow
def test_after_a_long_outage_the_server_is_found_within_seconds(tmp_path: Path) -> None:
    """The pool's own pauses would have grown to sixteen seconds."""
    socket = f".s.PGSQL.{connection.settings_dict['PORT'] or 5432}"
    away = deepcopy(connection.settings_dict) | {"HOST": str(tmp_path)}
    ours = DatabaseWrapper(away, "away")
    try:
        outage = time.monotonic() + 16
        while time.monotonic() < outage:
            with pytest.raises(OperationalError):
                ours.ensure_connection()
        (tmp_path / socket).symlink_to(Path(connection.settings_dict["HOST"]) / socket)
        back = time.monotonic()
        ours.ensure_connection()
        assert time.monotonic() - back < 4
    finally:
        ours.close()
        ours.close_pool()


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
    select([connection.connection], [], [], 20)  # until it has come
    heard: list[Any] = []
    connection.connection.add_notify_handler(heard.append)
    assert is_usable(connection.connection)
    assert heard, "only a question reads what was said"


def test_looking_a_row_up_is_expected_to_be_as_cheap_as_it_is() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SHOW random_page_cost")
        assert cursor.fetchone() == ("1.1",)


def test_options_of_the_operator_come_last() -> None:
    shows = "from django.conf import settings; print(settings.DATABASES['default']['OPTIONS']['options'])"
    environment = {"DATABASE_URL": "postgresql://me@host/db?options=-c%20random_page_cost%3D4", "SECRET_KEY": "k" * 50}
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "annotator.settings", **environment}
    done = subprocess.run([sys.executable, "-c", shows], env=environment, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    assert done.stdout.decode().split() == ["-c", "random_page_cost=1.1", "-c", "random_page_cost=4"]
