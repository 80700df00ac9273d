"""One walk over a JSON value that somebody sent, with limits on its depth and its size."""

from collections.abc import Iterator
from typing import Any

DEEPEST = 50
"""Levels of nesting. A deeper value would exhaust the stack of whoever reads it next."""


class NestedTooDeeply(ValueError):
    """The value has more than `DEEPEST` levels."""


class TooManyValues(ValueError):
    """The value holds more values, lists and objects included, than the caller allows."""


def texts_and_numbers(value: Any, *, most: int | None = None) -> Iterator[tuple[str, Any]]:
    """Yields each key and each value that is no list or object, with the dotted place where it stands.

    A key has the place of its object. A parsed value takes far more memory than its bytes in the file, hence `most`.

    Raises:
        NestedTooDeeply, TooManyValues: as soon as the limit is reached.
    """
    waiting: list[tuple[str, Any, int]] = [("", value, DEEPEST)]
    walked = 0
    while waiting:
        place, value, levels = waiting.pop()
        if not levels:
            raise NestedTooDeeply
        if walked == most:
            raise TooManyValues
        walked += 1
        if isinstance(value, dict):
            for key in value:
                yield place, key
            below = [(f"{place}.{key}" if place else key, item, levels - 1) for key, item in value.items()]
        elif isinstance(value, list):
            below = [
                (f"{place}.{number}" if place else str(number), item, levels - 1) for number, item in enumerate(value)
            ]
        else:
            yield place, value
            continue
        waiting += reversed(below)
