"""Prepares the next item of an iterator in a thread while the last one is worked on."""

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def read_ahead(items: Iterator[T]) -> Generator[T]:
    """Yields the items in their order. Two are there at a time: one in use, and one that is made meanwhile.

    They are made in another thread, so making them must not use the database. An error is raised in its item's place.
    Whoever does not use them all closes the generator, which ends the thread.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="reading-ahead") as thread:
        coming = thread.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = thread.submit(next, items, None)
            yield item
            del item  # a large one would stay in memory while the next one is made
