from __future__ import annotations

import pickle

import pytest

from rewards.learning.encoding import Encoded
from rewards.learning.token_rows import TokenRows, distinct

ITEMS = [Encoded((5, 6, 7), 1, 2, 0, 0), Encoded((), 0, 0, 3, 4), Encoded((300_000,), 0, 9, 1, 2)]


def test_what_comes_out_is_what_went_in() -> None:
    rows = TokenRows(iter(ITEMS))
    assert list(rows) == list(pickle.loads(pickle.dumps(rows))) == ITEMS
    assert (rows[-1], rows[1:]) == (ITEMS[2], ITEMS[1:])
    assert rows.lengths() == [3, 0, 1]
    with pytest.raises(IndexError):
        rows[3]


def test_no_items_are_no_rows() -> None:
    assert list(TokenRows([])) == []
    assert TokenRows([]).lengths() == []


def test_equal_items_are_told_from_those_that_differ_in_one_number() -> None:
    other = Encoded((5, 6, 7), 2, 2, 0, 0)
    rows, places = distinct([ITEMS[0], ITEMS[1], ITEMS[0], other])
    assert list(rows) == [ITEMS[0], ITEMS[1], other]
    assert places == [0, 1, 0, 2]


def test_segments_come_back_with_their_item() -> None:
    items = [Encoded((5, 6, 7), 1, 2, 0, 0, ((1, 2), (0, 0), (2, 3))), ITEMS[0]]
    assert list(TokenRows(items)) == items
    assert distinct([*items, items[0]])[1] == [0, 1, 0]
