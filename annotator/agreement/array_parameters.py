"""Numbers on their way to PostgreSQL."""

from collections.abc import Iterable


def array(numbers: Iterable[int]) -> str:
    """An array's literal: several times as fast as what the driver makes of a list."""
    return f"{{{','.join(map(str, numbers))}}}"
