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
    # Iterators, not lists of what is to come: one value may hold millions.
    levels: list[tuple[str, Iterator[tuple[Any, Any]]]] = [("", iter([(None, value)]))]
    walked = 0
    while levels:
        above, items = levels[-1]
        for key, item in items:
            if len(levels) > DEEPEST:
                raise NestedTooDeeply
            if walked == most:
                raise TooManyValues
            walked += 1
            if isinstance(key, str):
                yield above, key
            place = ".".join(str(part) for part in (above, key) if part not in ("", None))
            if isinstance(item, dict | list):
                levels.append((place, iter(item.items() if isinstance(item, dict) else enumerate(item))))
                break
            yield place, item
        else:
            levels.pop()
