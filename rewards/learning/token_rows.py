"""Keeps encoded items in arrays: four bytes a token, where tuples of Python's integers take up to 36."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import overload

import numpy as np
from numpy.typing import NDArray

from rewards.learning.encoding import Encoded


class TokenRows(Sequence[Encoded]):
    """A list of encoded items, each of which is made anew when it is asked for."""

    def __init__(self, encoded: Iterable[Encoded]) -> None:
        tokens, ends, numbers = array("i"), array("q", [0]), array("i")
        segments, segment_ends = array("i"), array("q", [0])
        for item in encoded:
            tokens.extend(item.ids)
            ends.append(len(tokens))
            numbers.extend(_numbers(item))
            segments.extend(chain.from_iterable(item.segments))
            segment_ends.append(len(segments) // 2)
        self._tokens: NDArray[np.int32] = np.array(tokens, dtype=np.int32)
        self._ends: NDArray[np.int64] = np.array(ends, dtype=np.int64)
        self._numbers: NDArray[np.int32] = np.array(numbers, dtype=np.int32).reshape(-1, 5)
        self._segments: NDArray[np.int32] = np.array(segments, dtype=np.int32).reshape(-1, 2)
        self._segment_ends: NDArray[np.int64] = np.array(segment_ends, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> Encoded: ...
    @overload
    def __getitem__(self, index: slice) -> list[Encoded]: ...
    def __getitem__(self, index: int | slice) -> Encoded | list[Encoded]:
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        row = range(len(self))[index]
        ids = self._tokens[self._ends[row] : self._ends[row + 1]].tolist()
        segments = self._segments[self._segment_ends[row] : self._segment_ends[row + 1]].tolist()
        start, tokens, prompt_cut, response_cut, closing = self._numbers[row].tolist()
        return Encoded(tuple(ids), start, tokens, prompt_cut, response_cut, tuple(map(tuple, segments)), closing)

    def lengths(self) -> list[int]:
        """[items]: the tokens of each item."""
        lengths: list[int] = np.diff(self._ends).tolist()
        return lengths


def _numbers(item: Encoded) -> tuple[int, ...]:
    return (item.response_start, item.response_tokens, item.prompt_cut, item.response_cut, item.closing)


def distinct(encoded: Iterable[Encoded]) -> tuple[TokenRows, list[int]]:
    """Returns the items without repetition, and for each given item its place among these."""
    places: dict[bytes, int] = {}
    of: list[int] = []

    def first_ones() -> Iterator[Encoded]:
        for item in encoded:
            # The whole item: one that was cut elsewhere may be read differently.
            segments = chain.from_iterable(item.segments)
            key = hashlib.blake2b(
                array("i", (*_numbers(item), len(item.segments), *segments, *item.ids)).tobytes(), digest_size=16
            ).digest()
            is_new = key not in places
            of.append(places.setdefault(key, len(places)))
            if is_new:
                yield item

    return TokenRows(first_ones()), of
