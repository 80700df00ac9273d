"""A database of commit 6be395a0 goes on; 6be395a0.sql.gz is a dump of one, with the rows that its own code made."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django import DjangoDbBlocker

from annotator.infrastructure import audit
from annotator.models import Annotation, AuditEntry, Consensus, Label, Membership, Project, Task, User, Webhook
from rewards.models import TrainingRun
from rewards.reasons import in_words

DUMP = Path(__file__).with_name("6be395a0.sql.gz")
OURS = "c.relnamespace = 'public'::regnamespace"


def plain(definition: str) -> str:
    """The definition without the casts and parentheses that change when a dump is restored."""
    return f"regexp_replace({definition}, '[()]|::(character varying|text)([[][]])?', '', 'g')"


SCHEMA = {
    "columns": f"""
        SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated,
            a.attstorage, pg_get_expr(d.adbin, d.adrelid)
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid LEFT JOIN pg_attrdef d
            ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE {OURS} AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
    """,
    "constraints": f"""
        SELECT c.relname, n.conname, {plain("pg_get_constraintdef(n.oid)")}
        FROM pg_constraint n JOIN pg_class c ON c.oid = n.conrelid WHERE {OURS} AND n.contype <> 'n'
    """,
    "indexes": f"""
        SELECT {plain("pg_get_indexdef(i.indexrelid)")} FROM pg_index i
        JOIN pg_class c ON c.oid = i.indrelid WHERE {OURS}
    """,
    "triggers": f"""
        SELECT pg_get_triggerdef(t.oid), p.prosrc FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
        JOIN pg_proc p ON p.oid = t.tgfoid WHERE {OURS} AND NOT t.tgisinternal
    """,
    "sequences": f"SELECT c.relname FROM pg_class c WHERE {OURS} AND c.relkind = 'S'",
}
RUN = """
INSERT INTO rewards_trainingrun (project_id, kind, state, reason, config, config_hash, code_version, seed, attempt,
    worker, progress, losses, metrics, verdict, error, log, created_at)
SELECT min(id), 'reward', 'failed', 'requested by "carol"', '{}', '', '', 0, 0, '', '{}', '[]', '{}', '{}', '', '',
    now() FROM annotator_project
"""
pytestmark = pytest.mark.django_db(transaction=True)


def schema() -> dict[str, set[tuple[Any, ...]]]:
    with connection.cursor() as cursor:
        return {name: set(cursor.execute(sql) or cursor.fetchall()) for name, sql in SCHEMA.items()}


@contextmanager
def connected_to(name: str) -> Iterator[None]:
    present = connection.settings_dict["NAME"]
    connect(name)
    try:
        yield
    finally:
        connect(present)


def connect(name: str) -> None:
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # it leads to the same database for ever
    connection.settings_dict["NAME"] = name


@pytest.fixture(scope="module")
def restored(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The name of a database of that commit."""
    name = f"{connection.settings_dict['NAME']}_before"
    with django_db_blocker.unblock():
        with connection._nodb_cursor() as cursor:
            cursor.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
            cursor.execute(f'CREATE DATABASE "{name}"')
        with psycopg.connect(**connection.get_connection_params() | {"dbname": name}, autocommit=True) as server:
            server.execute(gzip.decompress(DUMP.read_bytes()))
        yield name
        with connection._nodb_cursor() as cursor:
            cursor.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def test_a_database_of_before_becomes_a_present_one_with_its_rows(restored: str) -> None:
    present = schema()
    with connected_to(restored):
        with connection.cursor() as cursor:
            cursor.execute(RUN)
        call_command("migrate", verbosity=0)
        assert in_words(TrainingRun.objects.get().reason) == 'requested by "carol"'
        assert {name: rows ^ present[name] for name, rows in schema().items()} == {name: set() for name in SCHEMA}
        assert set(User.objects.values_list("username", flat=True)) == {"alice", "bob", "carol", "erin", "odd"}
        assert set(Project.objects.values_list("slug", flat=True)) == {"talk", "chat"}
        reasons = Task.objects.order_by("external_id").values_list("review_reason", flat=True)
        assert list(reasons) == ["dropped", "", "", ""]
        assert Consensus.objects.exclude(drop_reason="").get().task.external_id == "t-0"
        assert Membership.objects.exclude(pause_reason="").get().user.username == "alice"
        assert Webhook.objects.get().end_reason == Webhook.Ended.FAILING
        assert sorted(Label.objects.values_list("rubric_version", flat=True)) == [1] * 6 + [2] * 2
        assert (Annotation.objects.count(), AuditEntry.objects.count()) == (12, 22)
        last = AuditEntry.objects.latest("pk").pk
        audit.record("test.made", "the next entry")
        assert AuditEntry.objects.latest("pk").pk > last


def test_an_older_database_is_refused_with_the_commit_to_go_through(restored: str) -> None:
    with connected_to(restored):
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM django_migrations WHERE name = '0060_answers_of_import_jobs'")
        with pytest.raises(CommandError, match="Check out 6be395a0"):
            call_command("migrate", verbosity=0)
