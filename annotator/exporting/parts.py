"""Reads the rows of an export by COPY, a part of the project's tasks at a time, as PostgreSQL encodes them."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db import connection

from annotator.db.planning import by_indexes_without_transaction
from annotator.models import Project, Task

T = TypeVar("T")
FIRST, AT_ONCE = 100, 2_000
"""Tasks whose rows are read by one statement: at first few, so that the answer soon begins."""
GROWTH, MOST_AT_ONCE = 8, 100_000
"""Where a part has no rows, the next one has so many times its tasks: most tasks may have none."""
# Rows as bytes: PostgreSQL would look through each text once more for what to quote or to escape.
_COPY = "COPY ({select}) TO STDOUT WITH (FORMAT binary)"
_FILE_HEAD, _ROW_HEAD = 19, 6
"""Bytes before the first row, and before the one value of each: the number of values, and the length of this one."""
_LINE_ENDS = {ending.encode(): json.dumps(ending)[1:-1].encode() for ending in "\u0085\u2028\u2029"}


class StatementDuringCopy(Exception):
    """Whoever uses the rows has asked the database for something in the middle; read it before the first row."""


def in_parts(project: Project, read: Callable[[int, int | None], Iterator[T]]) -> Iterator[T]:
    """Yields what `read` does for one part of the project's tasks after the other, in the order of their ids.

    `read` gets the id of a part's first task, and that of the first task behind it; the last part has no such task. Its
    statements look up each row by an index, because a part has few of the rows of each table.
    """
    tasks = Task.objects.filter(project=project).order_by("pk").values_list("pk", flat=True)
    # From the project's first task on: of all those below the end, PostgreSQL would expect too many to look them up.
    first, size = tasks.first() or 0, FIRST
    more = bool(first)
    with by_indexes_without_transaction():
        while more:
            end = tasks.filter(pk__gte=first)[size : size + 1].first()
            has_rows = False
            for row in read(first, end):
                has_rows = True
                yield row
            first, more = end or 0, end is not None
            size = AT_ONCE if has_rows else min(GROWTH * size, MOST_AT_ONCE)


def copied_lines(select: str, parameters: Sequence[Any]) -> Iterator[bytes]:
    """Yields what a statement selects, one JSON value in each row, as lines.

    PostgreSQL reads on while the lines are made use of. Until the last one is read, the connection can run no other
    statement; one that comes from Django raises StatementDuringCopy.
    """
    copy = _COPY.format(select=select)
    # Django wraps the errors of its own calls alone.
    with (
        connection.cursor() as cursor,
        connection.wrap_database_errors,
        cursor.cursor.copy(copy, parameters) as sent,
        _no_other_statement(),
    ):
        try:
            head = _FILE_HEAD + _ROW_HEAD
            for row in sent:
                # What is shorter is the end of the file.
                if len(row) > head:
                    yield b"%b\n" % row[head:]
                    head = _ROW_HEAD
        except GeneratorExit:
            # To cancel the statement would end the transaction around it. A part is soon read to its end.
            for _ in sent:
                pass
            raise


@contextmanager
def _no_other_statement() -> Iterator[None]:
    """Refuses statements, for which the connection would otherwise wait without end: this very code has to read on."""

    def refuse(*_call: Any) -> Any:
        raise StatementDuringCopy("a statement was sent while rows are copied on the same connection")

    connection.execute_wrappers.append(refuse)
    try:
        yield
    finally:
        # Not `execute_wrapper`, which removes the last one: generators need not end in the order they began.
        connection.execute_wrappers.remove(refuse)


def without_line_ends(line: bytes) -> bytes:
    """Escapes the line ends that are valid within JSON texts: readers that split a file would break a row there."""
    if not line.isascii():
        for ending, escaped in _LINE_ENDS.items():
            line = line.replace(ending, escaped)
    return line
