"""What the database itself holds about scores: an object whose values are integers 0..4."""

from typing import Any

from django.db import models
from django.db.models import Func

# Strict mode: a nested array is an error of type, not unwrapped.
_BAD_VALUE = 'strict $.* ? (@.type() != "number" || @ < 0 || @ > 4 || @ != @.floor())'
_OUT_OF_RANGE = 'strict $.* ? (@.type() != "number" || @ < 0 || @ > 4)'


class _EveryValue(Func):
    """jsonb_typeof(x) = 'object' and no value fails the path's filter."""

    output_field = models.BooleanField()
    conditional = True

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **extra: Any) -> tuple[str, Any]:
        sql, params = compiler.compile(self.source_expressions[0])
        path = self.extra["path"]
        # One column reference is compiled once and used twice: it carries no parameters.
        return f"(jsonb_typeof({sql}) = 'object' AND NOT jsonb_path_exists({sql}, '{path}'))", params


def likert5(field: str) -> _EveryValue:
    """Every value of the JSON object is one of the integers 0, 1, 2, 3, 4."""
    return _EveryValue(models.F(field), path=_BAD_VALUE)


def within_scale(field: str) -> _EveryValue:
    """Every value of the JSON object is a number from 0 to 4 (a mean of ratings)."""
    return _EveryValue(models.F(field), path=_OUT_OF_RANGE)
