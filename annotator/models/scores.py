"""CHECK constraints on scores: a JSON object whose values are integers, or means of them, from 0 to 4."""

from typing import Any

from django.db import models
from django.db.models import Func

# Strict mode: lax mode would unwrap a nested array, and the numbers in it would pass.
_BAD_VALUE = 'strict $.* ? (@.type() != "number" || @ < 0 || @ > 4 || @ != @.floor())'
_OUT_OF_RANGE = 'strict $.* ? (@.type() != "number" || @ < 0 || @ > 4)'


class _EveryValue(Func):
    """The SQL condition that a column holds a JSON object and the path finds no bad value in it."""

    output_field = models.BooleanField()
    conditional = True

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **extra: Any) -> tuple[str, Any]:
        sql, params = compiler.compile(self.source_expressions[0])
        path = self.extra["path"]
        # The text of a column reference may stand twice, because it carries no parameters.
        return f"(jsonb_typeof({sql}) = 'object' AND NOT jsonb_path_exists({sql}, '{path}'))", params


def likert5(field: str) -> _EveryValue:
    """Returns the condition that every value of the JSON object is one of the integers 0, 1, 2, 3, 4."""
    return _EveryValue(models.F(field), path=_BAD_VALUE)


def within_scale(field: str) -> _EveryValue:
    """Returns the condition that every value of the JSON object is a number from 0 to 4 (a mean of ratings)."""
    return _EveryValue(models.F(field), path=_OUT_OF_RANGE)
