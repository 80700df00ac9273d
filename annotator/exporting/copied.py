"""Rows that PostgreSQL encodes as JSON itself and sends by COPY: several times as fast as rows made in Python."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import orjson
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Case, CharField, F, Func, JSONField, QuerySet, TextField, Value, When
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Cast

from annotator.exporting.columns import Row
from annotator.exporting.parts import Select, copied_in_parts, copied_lines, without_line_ends
from annotator.models import Project


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
