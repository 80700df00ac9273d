"""The next batch of an import is read while the last one is written."""

import threading
from collections.abc import Iterator

import pytest

from annotator.stages.importing.batches import read_ahead


def test_the_items_come_in_their_order() -> None:
    assert list(read_ahead(iter(range(1, 50)))) == list(range(1, 50))


def test_one_item_is_made_while_another_is_used() -> None:
    made: list[int] = []
    second = threading.Event()

    def items() -> Iterator[int]:
        for number in range(1, 5):
            made.append(number)
            if number == 2:
                second.set()
            yield number

    ahead = read_ahead(items())
    assert next(ahead) == 1
    assert second.wait(5)
    assert made == [1, 2]
    ahead.close()


def test_an_error_comes_where_its_item_would_have() -> None:
    def items() -> Iterator[str]:
        yield "good"
        raise ValueError("the file is damaged")

    ahead = read_ahead(items())
    assert next(ahead) == "good"
    with pytest.raises(ValueError, match="damaged"):
        next(ahead)


def test_no_thread_is_left_when_the_rest_is_not_wanted() -> None:
    ahead = read_ahead(iter(range(1, 1_000)))
    next(ahead)
    ahead.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("reading-ahead")]
