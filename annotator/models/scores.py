"""CHECK constraints on scores: a JSON object whose values are integers, or means of them, on the longest scale.

Scores of segments are lists [segments][aspects], with null where an aspect does not apply.

A constraint cannot read the rubric, so it does not know an attribute's own scale; whoever stores scores checks them.
"""

from typing import Any

from django.db import models
from django.db.models import Func

from annotator.limits import MOST_LEVELS

HIGHEST_SCORE = MOST_LEVELS - 1

# Strict mode: lax mode would unwrap a nested array, and the numbers in it would pass.
_BAD_VALUE = f'strict $.* ? (@.type() != "number" || @ < 0 || @ > {HIGHEST_SCORE} || @ != @.floor())'
_OUT_OF_RANGE = f'strict $.* ? (@.type() != "number" || @ < 0 || @ > {HIGHEST_SCORE})'
_BAD_PAIR = (
    'strict $[*] ? (@.size() != 2 || @[0].type() != "number" || @[1].type() != "number" || @[0] < 0 || @[1] <= @[0])'
)
_NO_LIST = 'strict $[*] ? (@.type() != "array")'
_BAD_CELL = (
    f'strict $[*][*] ? (@.type() != "null" && (@.type() != "number" || @ < 0 || @ > {HIGHEST_SCORE} || @ != @.floor()))'
)
_CELL_OUT_OF_RANGE = f'strict $[*][*] ? (@.type() != "null" && (@.type() != "number" || @ < 0 || @ > {HIGHEST_SCORE}))'


class _EveryValue(Func):
    """The SQL condition that a column holds a JSON object and the path finds no bad value in it."""

    output_field = models.BooleanField()
    conditional = True

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **extra: Any) -> tuple[str, Any]:
        sql, params = compiler.compile(self.source_expressions[0])
        path = self.extra["path"]
        # The text of a column reference may stand twice, because it carries no parameters.
        return f"(jsonb_typeof({sql}) = 'object' AND NOT jsonb_path_exists({sql}, '{path}'))", params


def whole_scores(field: str) -> _EveryValue:
    """Returns the condition that every value of the JSON object is an integer from 0 to HIGHEST_SCORE."""
    return _EveryValue(models.F(field), path=_BAD_VALUE)


def within_scale(field: str) -> _EveryValue:
    """Returns the condition that every value of the JSON object is a number from 0 to HIGHEST_SCORE, as means are."""
    return _EveryValue(models.F(field), path=_OUT_OF_RANGE)


class _EveryCell(Func):
    """The SQL condition that a column is NULL or a JSON list of lists in which the path finds no bad value."""

    output_field = models.BooleanField()
    conditional = True

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **extra: Any) -> tuple[str, Any]:
        sql, params = compiler.compile(self.source_expressions[0])
        # CASE, as a strict path fails on what is no list, and AND would not keep PostgreSQL from following it.
        lists = f"jsonb_typeof({sql}) = 'array' AND NOT jsonb_path_exists({sql}, '{_NO_LIST}')"
        cells = f"NOT jsonb_path_exists({sql}, '{self.extra['path']}')"
        return f"({sql} IS NULL OR CASE WHEN {lists} THEN {cells} ELSE false END)", params


def whole_cells(field: str) -> _EveryCell:
    """Returns the condition that the column holds lists of integers from 0 to HIGHEST_SCORE and nulls, or nothing."""
    return _EveryCell(models.F(field), path=_BAD_CELL)


def cells_within_scale(field: str) -> _EveryCell:
    """Returns the condition that the column holds lists of numbers from 0 to HIGHEST_SCORE and nulls, or nothing."""
    return _EveryCell(models.F(field), path=_CELL_OUT_OF_RANGE)


class _Ranges(Func):
    """The SQL condition that a column is NULL or a JSON list of pairs of whole numbers from 0."""

    output_field = models.BooleanField()
    conditional = True

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **extra: Any) -> tuple[str, Any]:
        sql, params = compiler.compile(self.source_expressions[0])
        lists = f"jsonb_typeof({sql}) = 'array' AND NOT jsonb_path_exists({sql}, '{_NO_LIST}')"
        pairs = f"NOT jsonb_path_exists({sql}, '{_BAD_PAIR}')"
        return f"({sql} IS NULL OR CASE WHEN {lists} THEN {pairs} ELSE false END)", params


def ranges(field: str) -> _Ranges:
    """Returns the condition that the column holds pairs [start, end] of positions, each not empty, or nothing.

    A constraint cannot read the text, so it does not know where it ends; segmenting.partition checks that.
    """
    return _Ranges(models.F(field))
