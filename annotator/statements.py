"""SQL that runs at every claim and every submission.

PostgreSQL plans such a statement once a connection: planning it takes longer than running it. Django's own cursors
send every statement as a text with its values in it, to be planned anew.
"""

import time
from dataclasses import dataclass
from typing import Any

from django.db import connection
from psycopg import Cursor

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Statement:
    """A prepared statement with named parameters, run on Django's connection and in its transaction."""

    sql: str

    def rows(self, **values: Any) -> list[Row]:
        return self._run(values).fetchall()

    def row(self, **values: Any) -> Row | None:
        return self._run(values).fetchone()

    def run(self, **values: Any) -> int:
        """For a statement that answers nothing; returns how many rows it changed."""
        return self._run(values).rowcount

    def plan(self, **values: Any) -> str:
        """What EXPLAIN says of it."""
        return "\n".join(line for (line,) in Statement(f"EXPLAIN {self.sql}").rows(**values))

    def _run(self, values: dict[str, Any]) -> Cursor[Row]:
        connection.ensure_connection()
        began = time.monotonic()
        with connection.wrap_database_errors:
            cursor: Cursor[Row] = Cursor(connection.connection)
            cursor.execute(self.sql.encode(), values, prepare=True)
        if connection.queries_logged:
            connection.queries_log.append({"sql": self.sql, "time": f"{time.monotonic() - began:.3f}"})
        return cursor
