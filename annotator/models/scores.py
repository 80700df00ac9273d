"""CHECK constraints on the JSON of scores and rankings: scores are integers, or means of them, on the longest scale.

Scores of segments are lists [segments][aspects], with null where an aspect does not apply.

A constraint cannot read the rubric, so it does not know an attribute's own scale; whoever stores scores checks them.
"""

from typing import Any

from django.db import models
from django.db.models import Func

from annotator.infrastructure.limits import MOST_LEVELS

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


class JsonCondition(Func):
    """A condition on the JSON of a column, by the class's SQL."""

    output_field = models.BooleanField()
    conditional = True
    sql = ""

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **extra: Any) -> tuple[str, Any]:
        column, params = compiler.compile(self.source_expressions[0])
        # The text of a column reference may stand several times, because it carries no parameters.
        return self.sql.format(column=column, **self.extra), params


class _EveryValue(JsonCondition):
    """The SQL condition that a column holds a JSON object and the path finds no bad value in it."""

    sql = "(jsonb_typeof({column}) = 'object' AND NOT jsonb_path_exists({column}, '{path}'))"


def whole_scores(field: str) -> _EveryValue:
    """Returns the condition that every value of the JSON object is an integer from 0 to HIGHEST_SCORE."""
    return _EveryValue(models.F(field), path=_BAD_VALUE)


def within_scale(field: str) -> _EveryValue:
    """Returns the condition that every value of the JSON object is a number from 0 to HIGHEST_SCORE, as means are."""
    return _EveryValue(models.F(field), path=_OUT_OF_RANGE)


# CASE, as a strict path fails on what is no list, and AND would not keep PostgreSQL from following it.
_LISTS = (
    "({column} IS NULL OR CASE WHEN jsonb_typeof({column}) = 'array' AND NOT jsonb_path_exists({column}, '%s') "
    "THEN NOT jsonb_path_exists({column}, '%s') ELSE false END)"
)


class _EveryCell(JsonCondition):
    """The SQL condition that a column is NULL or a JSON list of lists in which the path finds no bad value."""

    sql = _LISTS % (_NO_LIST, "{path}")


def whole_cells(field: str) -> _EveryCell:
    """Returns the condition that the column holds lists of integers from 0 to HIGHEST_SCORE and nulls, or nothing."""
    return _EveryCell(models.F(field), path=_BAD_CELL)


def cells_within_scale(field: str) -> _EveryCell:
    """Returns the condition that the column holds lists of numbers from 0 to HIGHEST_SCORE and nulls, or nothing."""
    return _EveryCell(models.F(field), path=_CELL_OUT_OF_RANGE)


class _Ranges(JsonCondition):
    """The SQL condition that a column is NULL or a JSON list of pairs of whole numbers from 0."""

    sql = _LISTS % (_NO_LIST, _BAD_PAIR)


def ranges(field: str) -> _Ranges:
    """Returns the condition that the column holds pairs [start, end] of positions, each not empty, or nothing.

    A constraint cannot read the text, so it does not know where it ends; segmenting.partition checks that.
    """
    return _Ranges(models.F(field))


FEWEST_RANKED = 3
"""The fewest responses that are ranked: two are compared by a preference, which has a strength."""
_BAD_TIER = (
    'strict $[*] ? (@.type() != "array" || @.size() < 1'
    ' || exists(@[*] ? (@.type() != "number" || @ < 1 || @ != @.floor())))'
)


class _EveryTier(JsonCondition):
    """The SQL condition that a column holds a JSON array and no element of it is a bad tier."""

    sql = f"(jsonb_typeof({{column}}) = 'array' AND NOT jsonb_path_exists({{column}}, '{_BAD_TIER}'))"


def tiers_of_ids(field: str) -> models.Q:
    """Returns the condition that a field is null, or a list of non-empty lists of whole numbers from 1.

    A trigger checks that a ranking names each response once.
    """
    return models.Q(**{f"{field}__isnull": True}) | models.Q(_EveryTier(models.F(field)))
