"""How far work has got."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """What is being done (*sending*, *importing*, *writing*, *receiving*, *scoring*), and how much of how much.

    Bytes while something is sent, imported or received; rows or items else. `total` is 0 where it is not known.
    """

    doing: str
    done: int
    total: int


OnProgress = Callable[[Progress], object] | None
