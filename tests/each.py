"""Loops that assert: over nothing they would assert nothing."""

from collections.abc import Iterable
from typing import TypeVar

Thing = TypeVar("Thing")


def each(things: Iterable[Thing]) -> list[Thing]:
    """Returns the things, of which there has to be one."""
    found = list(things)
    assert found, "there is nothing to look at"
    return found
