"""Runs the SQL of every claim and every submission as prepared statements.

PostgreSQL plans a prepared statement once for each connection, and planning takes longer than running it. Django's own
cursors send each statement as a text with the values in it, which has to be planned every time.
"""

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import JSONField, Model
from psycopg import Connection, Cursor

Row = tuple[Any, ...]
_CURSORS = "_statement_cursors"
M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class Columns(Generic[M]):
    """The columns of a model in a statement, written `alias.column`, and how a row of them becomes an instance.

    Fields in `leave_out` are deferred: Django reads them when they are first used.
    """

    model: type[M]
    alias: str
    leave_out: tuple[str, ...] = ()

    @cached_property
    def names(self) -> list[str]:
        fields = self.model._meta.concrete_fields
        return [field.attname for field in fields if field.attname not in self.leave_out]

    @cached_property
    def _json(self) -> list[int]:
        fields = {field.attname: field for field in self.model._meta.concrete_fields}
        return [place for place, name in enumerate(self.names) if isinstance(fields[name], JSONField)]

    def __str__(self) -> str:
        return ", ".join(f'{self.alias}."{name}"' for name in self.names)

    def instance(self, values: Sequence[Any]) -> M:
        """Makes an instance of the model from one value for each of `names`."""
        row = list(values)
        # Django has psycopg return JSON as text, as its fields decode it themselves.
        for place in self._json:
            row[place] = None if row[place] is None else json.loads(row[place])
        return self.model.from_db(DEFAULT_DB_ALIAS, self.names, row)


def _cursor_of(connection: Connection[Any], sql: str) -> Cursor[Row]:
    """Returns the connection's cursor for this statement, which remembers how its values are written and read."""
    cursors: dict[str, Cursor[Row]] = vars(connection).setdefault(_CURSORS, {})
    cursor = cursors.get(sql)
    if cursor is None:
        cursor = cursors[sql] = Cursor(connection)
    return cursor


@dataclass(frozen=True)
class Statement:
    """A statement with named parameters, which runs on Django's connection and in its transaction.

    A prepared statement has one plan for all values, so its conditions should select single rows by their keys. A
    statement that takes lists of any length is better planned each time.
    """

    sql: str
    prepared: bool = True

    def rows(self, **values: Any) -> list[Row]:
        return self._run(values).fetchall()

    def row(self, **values: Any) -> Row | None:
        return self._run(values).fetchone()

    def run(self, **values: Any) -> int:
        """Runs a statement that returns no rows; returns the number of rows that it changed."""
        return self._run(values).rowcount

    def plan(self, **values: Any) -> str:
        """Returns the output of EXPLAIN for the statement."""
        return "\n".join(line for (line,) in Statement(f"EXPLAIN {self.sql}").rows(**values))

    def _run(self, values: dict[str, Any]) -> Cursor[Row]:
        connection = connections[DEFAULT_DB_ALIAS]  # looked up once; django.db.connection would do so at every use
        connection.ensure_connection()
        began = time.monotonic()
        with connection.wrap_database_errors:
            # The connection's own would keep what it has read last, which may be much where statements take lists.
            cursor = _cursor_of(connection.connection, self.sql) if self.prepared else Cursor(connection.connection)
            cursor.execute(self._encoded, values, prepare=self.prepared)
        # A plain psycopg cursor bypasses Django's log, which the limits on queries in the tests count.
        if connection.queries_logged:
            connection.queries_log.append({"sql": self.sql, "time": f"{time.monotonic() - began:.3f}"})
        return cursor

    @cached_property
    def _encoded(self) -> bytes:
        return self.sql.encode()


def array(numbers: Iterable[int]) -> str:
    """Returns the literal of a PostgreSQL array. The driver takes several times as long to convert a list."""
    return f"{{{','.join(map(str, numbers))}}}"
