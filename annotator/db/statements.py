"""SQL that runs at every claim and every submission.

PostgreSQL plans such a statement once a connection: planning it takes longer than running it. Django's own cursors
send every statement as a text with its values in it, to be planned anew.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import JSONField, Model
from psycopg import Cursor

Row = tuple[Any, ...]
M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class Columns(Generic[M]):
    """Columns of a model in a statement, `alias.column` each, and how rows of them become instances.

    What is left out is read by Django when somebody asks for it.
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
        """Makes an instance from one value for each name."""
        row = list(values)
        for place in self._json:
            row[place] = None if row[place] is None else json.loads(row[place])
        return self.model.from_db(DEFAULT_DB_ALIAS, self.names, row)


@dataclass(frozen=True)
class Statement:
    """A statement with named parameters, run on Django's connection and in its transaction.

    A prepared one has one plan for all values: its conditions should be on single rows by their keys. What takes lists
    of any length is better planned each time.
    """

    sql: str
    prepared: bool = True

    def rows(self, **values: Any) -> list[Row]:
        return self._run(values).fetchall()

    def row(self, **values: Any) -> Row | None:
        return self._run(values).fetchone()

    def run(self, **values: Any) -> int:
        """Runs a statement that returns no rows; returns how many it changed."""
        return self._run(values).rowcount

    def plan(self, **values: Any) -> str:
        """What EXPLAIN says of it."""
        return "\n".join(line for (line,) in Statement(f"EXPLAIN {self.sql}").rows(**values))

    def _run(self, values: dict[str, Any]) -> Cursor[Row]:
        here = connections[DEFAULT_DB_ALIAS]  # looked up once: `connection` would do it at every use
        here.ensure_connection()
        began = time.monotonic()
        with here.wrap_database_errors:
            cursor: Cursor[Row] = Cursor(here.connection)
            cursor.execute(self._encoded, values, prepare=self.prepared)
        if here.queries_logged:
            here.queries_log.append({"sql": self.sql, "time": f"{time.monotonic() - began:.3f}"})
        return cursor

    @cached_property
    def _encoded(self) -> bytes:
        return self.sql.encode()
