"""Has Python look for garbage less often while a file is imported."""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_USUAL = gc.get_threshold()
_counting = threading.Lock()
_imports = 0


@contextmanager
def few_garbage_collections() -> Iterator[None]:
    """Looks for garbage once in a batch: rows form no cycles, and looking among them took a fifth of the time.

    The whole process does so, until the last of its imports has ended.
    """
    _count(1)
    try:
        yield
    finally:
        _count(-1)


def _count(more: int) -> None:
    global _imports
    with _counting:
        _imports += more
        gc.set_threshold(100_000 if _imports else _USUAL[0], *_USUAL[1:])
