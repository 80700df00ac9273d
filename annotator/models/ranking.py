"""What the database itself holds about a ranking's shape; that it names each response once is a trigger's to see."""

from typing import Any

from django.db import models
from django.db.models import Func

FEWEST_RANKED = 3
"""Responses: two are compared by a preference, which has a strength."""
# Strict mode: a tier that is no list is an error of type, not wrapped into one.
_BAD_TIER = (
    'strict $[*] ? (@.type() != "array" || @.size() < 1'
    ' || exists(@[*] ? (@.type() != "number" || @ < 1 || @ != @.floor())))'
)


class _EveryTier(Func):
    """jsonb_typeof(x) = 'array' and no element of it is a bad tier."""

    output_field = models.BooleanField()
    conditional = True

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **extra: Any) -> tuple[str, Any]:
        sql, params = compiler.compile(self.source_expressions[0])
        # One column reference is compiled once and used twice: it carries no parameters.
        return f"(jsonb_typeof({sql}) = 'array' AND NOT jsonb_path_exists({sql}, '{_BAD_TIER}'))", params


def tiers_of_ids(field: str) -> models.Q:
    """Null, or a list of lists of whole numbers, none of them empty."""
    return models.Q(**{f"{field}__isnull": True}) | models.Q(_EveryTier(models.F(field)))
