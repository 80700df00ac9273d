"""The CHECK constraint on a ranking's shape. A trigger checks that a ranking names each response once."""

from typing import Any

from django.db import models
from django.db.models import Func

FEWEST_RANKED = 3
"""The fewest responses that are ranked: two are compared by a preference, which has a strength."""
# Strict mode: lax mode unwraps and wraps arrays by itself, so that a tier would not be tested as it stands.
_BAD_TIER = (
    'strict $[*] ? (@.type() != "array" || @.size() < 1'
    ' || exists(@[*] ? (@.type() != "number" || @ < 1 || @ != @.floor())))'
)


class _EveryTier(Func):
    """The SQL condition that a column holds a JSON array and no element of it is a bad tier."""

    output_field = models.BooleanField()
    conditional = True

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **extra: Any) -> tuple[str, Any]:
        sql, params = compiler.compile(self.source_expressions[0])
        # The text of a column reference may stand twice, because it carries no parameters.
        return f"(jsonb_typeof({sql}) = 'array' AND NOT jsonb_path_exists({sql}, '{_BAD_TIER}'))", params


def tiers_of_ids(field: str) -> models.Q:
    """Returns the condition that a field is null, or a list of non-empty lists of whole numbers from 1."""
    return models.Q(**{f"{field}__isnull": True}) | models.Q(_EveryTier(models.F(field)))
