"""Empties the tables after a test with real transactions, in a few hundredths of a second.

Django truncates every table, which makes the files of all indexes anew, and has content types and permissions written
again; what other migrations have written is then gone. Here rows are deleted, and those of the migrations put back.
Deleted rows keep their room, and so do those that were rolled back: tables that have grown are truncated.
"""

from functools import cache

from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.test import TransactionTestCase

_SAVED = "as_migrated"
"""The schema that holds the rows of the migrations."""
_GROWN_BYTES = 2_000_000

_flush = TransactionTestCase._fixture_teardown  # type: ignore[attr-defined]


def save_rows() -> None:
    """Keeps a copy of what the migrations have written."""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP SCHEMA IF EXISTS {_SAVED} CASCADE; CREATE SCHEMA {_SAVED}")
        for table in _tables():
            cursor.execute(f'SELECT EXISTS (SELECT FROM "{table}")')
            if (cursor.fetchone() or [False])[0]:
                cursor.execute(f'CREATE TABLE {_SAVED}."{table}" AS TABLE "{table}"')


def empty_tables(test: TransactionTestCase) -> None:
    """In place of Django's own `TransactionTestCase._fixture_teardown`."""
    with connection.cursor() as cursor:
        if quickly := _may_skip_triggers(cursor):
            _as_migrated(cursor, truncate=_have_grown(cursor))
    if not quickly:
        _flush(test)


def truncate_grown_tables() -> None:
    """After a test that has rolled back many rows."""
    with connection.cursor() as cursor:
        if _may_skip_triggers(cursor) and _have_grown(cursor):
            _as_migrated(cursor, truncate=True)


def _may_skip_triggers(cursor: CursorWrapper) -> bool:
    """The audit's triggers refuse deletions, and only a superuser's session goes without triggers."""
    cursor.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
    return bool((cursor.fetchone() or [False])[0])


def _have_grown(cursor: CursorWrapper) -> bool:
    sizes = "SELECT sum(pg_relation_size(name::regclass)) > %s FROM unnest(%s::text[]) AS name"
    cursor.execute(sizes, [_GROWN_BYTES, list(_tables())])
    return bool((cursor.fetchone() or [False])[0])


def _as_migrated(cursor: CursorWrapper, *, truncate: bool) -> None:
    """In one transaction, which waits for whoever is still writing."""
    names = ", ".join(f'"{table}"' for table in _tables())
    emptied = [f"TRUNCATE {names}"] if truncate else [f'DELETE FROM "{table}"' for table in _tables()]
    begin = ["BEGIN", "SET LOCAL session_replication_role = replica", f"LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE"]
    cursor.execute("; ".join([*begin, *emptied, *_insertions(), "COMMIT"]))


@cache
def _tables() -> tuple[str, ...]:
    return tuple(connection.introspection.django_table_names(only_existing=True, include_views=False))


@cache
def _insertions() -> tuple[str, ...]:
    """The columns by name: a test may have migrated their order away."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, string_agg(quote_ident(column_name), ', ' ORDER BY ordinal_position) "
            "FROM information_schema.columns WHERE table_schema = %s GROUP BY table_name",
            [_SAVED],
        )
        tables = cursor.fetchall()
    return tuple(
        f'INSERT INTO "{table}" ({columns}) SELECT {columns} FROM {_SAVED}."{table}"' for table, columns in tables
    )
