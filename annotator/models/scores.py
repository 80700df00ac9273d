"""CHECK constraints on scores: a JSON object whose values are integers, or means of them, on the longest scale.

A constraint cannot read the rubric, so it does not know an attribute's own scale; whoever stores scores checks them.
"""

from typing import Any

from django.db import models
from django.db.models import Func

FEWEST_LEVELS, MOST_LEVELS = 2, 7
"""The levels that an attribute may have. Scores count them from 0."""
HIGHEST_SCORE = MOST_LEVELS - 1

# Strict mode: lax mode would unwrap a nested array, and the numbers in it would pass.
_BAD_VALUE = f'strict $.* ? (@.type() != "number" || @ < 0 || @ > {HIGHEST_SCORE} || @ != @.floor())'
_OUT_OF_RANGE = f'strict $.* ? (@.type() != "number" || @ < 0 || @ > {HIGHEST_SCORE})'


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
