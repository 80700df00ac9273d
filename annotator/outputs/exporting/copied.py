"""Rows that PostgreSQL encodes as JSON itself and sends by COPY, a part of the project's tasks at a time.

That is several times as fast as rows made in Python.
"""

import json
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from itertools import chain
from typing import Any

import orjson
from django.core.exceptions import EmptyResultSet
from django.db import DEFAULT_DB_ALIAS, OperationalError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Case, CharField, F, Func, JSONField, QuerySet, TextField, Value, When
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Cast

from annotator.infrastructure.db.planning import by_indexes_without_transaction
from annotator.models import Project, Task
from annotator.outputs.exporting.columns import Row

Select = tuple[str, Sequence[Any]]
"""A statement, and the values of its parameters."""
FIRST, AT_ONCE = 100, 2_000
"""Tasks whose rows are read by one statement: at first few, so that the answer soon begins, and a preview soon ends."""
GROWTH, MOST_AT_ONCE = 8, 100_000
"""The next part has so many times the tasks. Where the last had no rows it may be larger: most tasks may have none."""
READ_AHEAD_EVERY, MOST_READ_AHEAD = 64, 32
"""After how many rows of a part what has come of the next one is taken into memory, and how often: at most 200 kB each
time, as the kernel holds no more. Otherwise PostgreSQL blocks on a full socket buffer while we send the previous part.
"""
_END = """
    SELECT
        (SELECT id FROM annotator_task WHERE project_id = %(project)s AND id >= %(first)s
            ORDER BY id OFFSET %(size)s LIMIT 1),
        (SELECT id + 1 FROM annotator_task WHERE project_id = %(project)s ORDER BY id DESC LIMIT 1)
"""
_SETTINGS = "SELECT name, setting FROM pg_settings WHERE source = 'session'"
# Rows as bytes: PostgreSQL would look through each text once more for what to quote or to escape.
_COPY = "COPY ({select}) TO STDOUT WITH (FORMAT binary)"
_FILE_HEAD, _ROW_HEAD = 19, 6
"""Bytes before the first row, and before the one value of each: the number of values, and the length of this one."""
_LINE_ENDS = {ending.encode(): json.dumps(ending)[1:-1].encode() for ending in "\u0085\u2028\u2029"}


class StatementDuringCopy(Exception):
    """Whoever uses the rows has asked the database for something in the middle; read it before the first row."""


def copied_in_parts(
    project: Project,
    select: Callable[[int, int], Select],
    *,
    planned: Callable[[], AbstractContextManager[None]] = by_indexes_without_transaction,
    at_once: int | None = None,
) -> Iterator[bytes]:
    """Yields what a statement selects, as `copied_lines` does, for one part of the project's tasks after the other.

    `select` gets the id of a part's first task, and one that is larger than its last task's. It returns a statement and
    its values. The statements look up each row by an index, because a part has few of the rows of each table, unless
    they are `planned` otherwise. A part has AT_ONCE tasks, or `at_once`. Raises EmptyResultSet where `select` does.
    """
    first, size = Task.objects.filter(project=project).order_by("pk").values_list("pk", flat=True).first(), FIRST
    under_way: deque[_Part] = deque()
    with planned(), _another_connection() as another:
        idle = deque([connection] if another is None else [connection, another])
        try:
            while first or under_way:
                # On one connection PostgreSQL looks up the next part, while the rows of this one are made use of.
                while first and idle:
                    using = idle.popleft()
                    behind, end = _end(project, first, size, using)
                    under_way.append(_Part(*select(first, end), using))
                    first = behind
                part, *later = under_way
                has_rows = False
                for number, line in enumerate(part.lines):
                    has_rows = True
                    yield line
                    if number % READ_AHEAD_EVERY == 0 and later:
                        later[0].read_ahead()
                size = min(GROWTH * size, (at_once or AT_ONCE) if has_rows else MOST_AT_ONCE)
                idle.append(under_way.popleft().using)
        finally:
            # All of them, whatever one raises: a part that is not closed holds its connection.
            with ExitStack() as ends:
                for part in under_way:
                    ends.callback(part.lines.close)


class _Part:
    """The rows of a part, which the connection sends from now on; `lines` yields them."""

    def __init__(self, select: str, parameters: Sequence[Any], using: BaseDatabaseWrapper) -> None:
        self.using = using
        self._taken_ahead = 0
        self._begun: Future[Any] | None = None
        self.lines = self._copied(select, parameters)
        next(self.lines)

    def read_ahead(self) -> None:
        """Takes what has come of rows that are wanted later: PostgreSQL goes on when there is room in the socket."""
        # Two threads must not read from one connection.
        if self._begun and self._begun.done() and self._taken_ahead < MOST_READ_AHEAD:
            self._taken_ahead += 1
            self.using.connection.pgconn.consume_input()

    def _copied(self, select: str, parameters: Sequence[Any]) -> Generator[bytes]:
        """Sends the statement at the first step, which yields nothing of worth; yields its lines from then on."""
        copy = _COPY.format(select=select)
        # The answer comes with the first rows, and before these PostgreSQL may have to read all there are. So a thread
        # waits for it, while this one makes use of another part. Django wraps the errors of its own calls alone.
        with (
            self.using.cursor() as cursor,
            self.using.wrap_database_errors,
            ExitStack() as until_ended,
            _no_other_statement(self.using),
            ThreadPoolExecutor(max_workers=1) as thread,
        ):
            begun = self._begun = thread.submit(until_ended.enter_context, cursor.cursor.copy(copy, parameters))
            try:
                yield b""
                head = _FILE_HEAD + _ROW_HEAD
                for row in begun.result():
                    # What is shorter is the end of the file.
                    if len(row) > head:
                        yield b"%b\n" % row[head:]
                        head = _ROW_HEAD
            except GeneratorExit:
                # To cancel the statement would end the transaction around it. A part is soon read to its end.
                if not begun.exception():
                    deque(begun.result(), maxlen=0)
                raise


def _end(project: Project, first: int, size: int, using: BaseDatabaseWrapper) -> tuple[int | None, int]:
    """Returns the id of the first task behind a part of so many, None for the last part, and where the part ends.

    The last one ends with the project: behind its tasks may be millions of other projects' tasks.
    """
    with using.cursor() as cursor:
        cursor.execute(_END, {"project": project.pk, "first": first, "size": size})
        behind, end = cursor.fetchone()
    return behind, behind or end or first + 1


@contextmanager
def _another_connection() -> Iterator[BaseDatabaseWrapper | None]:
    """Opens a connection to read by besides this thread's, if PostgreSQL has one to spare.

    In a transaction it opens none, as it would not see what the transaction sees. It does not come from the pool, whose
    connections are for whoever waits for a page.
    """
    if connection.in_atomic_block:
        yield None
        return
    other = connections.create_connection(DEFAULT_DB_ALIAS)
    # A new dictionary: this one is the settings', which every later connection of the process is made by.
    options = {name: value for name, value in other.settings_dict["OPTIONS"].items() if name != "pool"}
    other.settings_dict = {**other.settings_dict, "OPTIONS": options}
    try:
        with suppress(OperationalError):
            other.ensure_connection()
            with connection.cursor() as cursor:
                cursor.execute(_SETTINGS)
                settings = cursor.fetchall()
            with other.cursor() as cursor:
                cursor.executemany("SELECT set_config(%s, %s, false)", settings)
        yield other if other.connection else None
    finally:
        other.close()


def copied_lines(select: str, parameters: Sequence[Any]) -> Iterator[bytes]:
    """Yields what a statement selects, one JSON value in each row, as lines.

    PostgreSQL reads on while the lines are made use of. Until the last one is read, the connection can run no other
    statement; one that comes from Django raises StatementDuringCopy.
    """
    yield from _Part(select, parameters, connection).lines


@contextmanager
def _no_other_statement(using: BaseDatabaseWrapper) -> Iterator[None]:
    """Refuses statements, for which the connection would otherwise wait without end: this very code has to read on."""

    def refuse(*_call: Any) -> Any:
        raise StatementDuringCopy("a statement was sent while rows are copied on the same connection")

    using.execute_wrappers.append(refuse)
    try:
        yield
    finally:
        # Not `execute_wrapper`, which removes the last one: generators need not end in the order they began.
        using.execute_wrappers.remove(refuse)


def without_line_ends(line: bytes) -> bytes:
    """Escapes the line ends that are valid within JSON texts: readers that split a file would break a row there."""
    if not line.isascii():
        for ending, escaped in _LINE_ENDS.items():
            line = line.replace(ending, escaped)
    return line


class Lines(Iterable[Row]):
    """Rows that are JSON lines already: `lines` are their bytes, and iteration decodes them."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self.lines = lines

    def __iter__(self) -> Iterator[Row]:
        return map(orjson.loads, self.lines)


def copied(
    project: Project,
    rows: QuerySet[Any, Any],
    names: Sequence[str],
    *,
    task: str,
    among: Sequence[int] | None = None,
    sparse: bool = False,
    at_once: int | None = None,
) -> Lines:
    """Returns the rows of a `values_list` query as JSON, a part of the project's tasks at a time.

    `names` are the names of its columns, and `task` is the field that leads to a row's task. The query may be one of
    few tasks already, `among`, which are no parts then. Of `sparse` rows, fields that are null are left out. A part has
    `at_once` tasks, if that is named. The rows of a task are of one moment, those of different tasks need not be.
    """
    lines = _lines(project, rows, names, task=task if among is None else None, at_once=at_once)
    # json_strip_nulls would read the texts of every row once more.
    return Lines(map(_without_nulls, lines) if sparse else lines)


def _lines(
    project: Project, rows: QuerySet[Any, Any], names: Sequence[str], *, task: str | None, at_once: int | None
) -> Iterator[bytes]:
    def of_part(first: int, end: int) -> Select:
        return _select(rows.filter(**{f"{task}__gte": first, f"{task}__lt": end}), names)

    with suppress(EmptyResultSet):  # the query's own conditions exclude everything
        lines = copied_in_parts(project, of_part, at_once=at_once) if task else copied_lines(*_select(rows, names))
        yield from map(without_line_ends, lines)


def _select(rows: QuerySet[Any, Any], names: Sequence[str]) -> Select:
    sql, parameters = rows.query.sql_with_params()
    return f"SELECT row_to_json(q) FROM ({sql}) AS q ({', '.join(map(_quoted, names))})", parameters


def _without_nulls(line: bytes) -> bytes:
    if b":null" not in line:
        return line
    row = {name: value for name, value in orjson.loads(line).items() if value is not None}
    return without_line_ends(orjson.dumps(row)) + b"\n"


def _quoted(name: str) -> str:
    # Doubled, as the statement has parameters.
    return connection.ops.quote_name(name.replace('"', '""')).replace("%", "%%")


# Expressions -----------------------------------------------------------------------------------------------


MOMENT = """replace(to_char(%(expressions)s AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), '.000Z', 'Z')"""
"""A time as text, in UTC and to the millisecond, as Django's JSON encoder writes it."""


def moment(field: str) -> Func:
    """Returns the time in a field as MOMENT."""
    return Func(F(field), template=MOMENT, output_field=CharField())


def response_name(path: str) -> Case:
    """Returns a response's id as imported, or else its number, counted from 1."""
    number = Cast(F(f"{path}position") + Value(1), CharField())
    return Case(When(**{f"{path}external_id": ""}, then=number), default=F(f"{path}external_id"))


def prompt_text(conversation: str) -> Func:
    """Returns messages as a HelpSteer2 prompt, as `prompt_from_messages` does."""
    # Most conversations are one message, which is the prompt: looking at their turns would take as long as the rest.
    template = r"""CASE WHEN jsonb_array_length(%(expressions)s) = 1 AND %(expressions)s->0->>'role' = 'user'
        THEN %(expressions)s->0->>'content' ELSE (SELECT string_agg(CASE
        WHEN n = 1 AND m->>'role' = 'system' THEN E'<extra_id_0>System\n' || (m->>'content') || E'\n<extra_id_1>User\n'
        WHEN m->>'role' = 'user' AND (n = 1 OR n = 2 AND %(expressions)s->0->>'role' = 'system') THEN m->>'content'
        ELSE E'\n<extra_id_1>' || initcap(m->>'role') || E'\n' || (m->>'content') END, '' ORDER BY n)
        FROM jsonb_array_elements(%(expressions)s) WITH ORDINALITY AS turns (m, n)) END"""
    return Func(F(conversation), template=template, output_field=TextField())


def numbers_of(field: str, keys: Sequence[str]) -> list[KeyTransform]:
    """Returns the value of each key of an object."""
    return [KeyTransform(key, field) for key in keys]


def numbers_object(field: str, keys: Sequence[str]) -> Func:
    """Returns an object's values by these keys in their order, without those that it lacks."""
    pairs = chain.from_iterable((Value(key), KeyTransform(key, field)) for key in keys)
    template = "json_strip_nulls(json_build_object(%(expressions)s))"
    return Func(*pairs, template=template, output_field=JSONField())


def named_tiers(ranking: str) -> Func:
    """Returns a ranking with the names of its responses in place of their keys; null for none."""
    template = """(SELECT json_agg((
            SELECT json_agg(coalesce(nullif(r.external_id, ''), (r.position + 1)::text) ORDER BY place)
            FROM jsonb_array_elements_text(tier) WITH ORDINALITY AS in_tier (id, place)
            JOIN annotator_response r ON r.id = in_tier.id::bigint
        ) ORDER BY rank) FROM jsonb_array_elements(%(expressions)s) WITH ORDINALITY AS tiers (tier, rank))"""
    return Func(F(ranking), template=template, output_field=JSONField())
