"""How far work has got, for whoever draws a bar."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Advance:
    """What is being done (*sending*, *importing*, *writing*, *receiving*, *scoring*), and how much of how much.

    Bytes while something is sent, imported or received; rows or items else. `total` is 0 where nobody knows it.
    """

    doing: str
    done: int
    total: int


Told = Callable[[Advance], object]


def nobody(_advance: Advance) -> None:
    """Hears of progress where no one asked for it."""
