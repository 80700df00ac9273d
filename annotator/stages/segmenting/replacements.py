"""Moves ranges when parts of their text are replaced, as by a redaction."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from annotator.stages.segmenting.ranges import Range


@dataclass(frozen=True)
class Replacement:
    """The characters of a text from `start` up to, not including, `end`, and the text that takes their place."""

    start: int
    end: int
    text: str

    @property
    def growth(self) -> int:
        return len(self.text) - (self.end - self.start)


class WrongReplacements(ValueError):
    """Some replacements overlap, are empty, out of order or out of the text, so they describe no new text."""


def replaced(text: str, replacements: Sequence[Replacement]) -> str:
    """Returns the text with the replacements made.

    Raises:
        WrongReplacements: They describe no new text.
    """
    _check_order(replacements)
    if replacements and replacements[-1].end > len(text):
        raise WrongReplacements("the last replacement reaches beyond the text")
    bounds = [0, *(bound for one in replacements for bound in (one.start, one.end)), len(text)]
    kept = [text[start:end] for start, end in zip(bounds[::2], bounds[1::2], strict=True)]
    return kept[0] + "".join(one.text + after for one, after in zip(replacements, kept[1:], strict=True))


def moved(ranges: Sequence[Range], replacements: Sequence[Replacement]) -> tuple[Range | None, ...]:
    """Returns where each range of the old text lies in the new one, or None where nothing is left of it.

    A replacement belongs to the range in which it begins: the boundaries inside it move to its end. So ranges that
    partitioned the old text partition the new one, once those that are gone are left out, and a segment keeps every
    character that was its own and was not replaced.

    Raises:
        WrongReplacements: They describe no new text.
    """
    _check_order(replacements)
    positions = _Positions(replacements)
    ends = (Range(positions.moved(start), positions.moved(end)) for start, end in ranges)
    return tuple(place if place.start < place.end else None for place in ends)


class _Positions:
    """The positions of the new text for those of the old one. Positions inside a replacement move to its end."""

    def __init__(self, replacements: Sequence[Replacement]) -> None:
        self.replacements = replacements
        self.starts = [one.start for one in replacements]
        self.growths = [0, *accumulate(one.growth for one in replacements)]

    def moved(self, position: int) -> int:
        # The number of replacements that begin before the position.
        count = bisect_right(self.starts, position - 1)
        inside = count and self.replacements[count - 1].end > position
        return (self.replacements[count - 1].end if inside else position) + self.growths[count]


def _check_order(replacements: Sequence[Replacement]) -> None:
    ends = [0, *(one.end for one in replacements)]
    if any(not end <= one.start < one.end for end, one in zip(ends, replacements, strict=False)):
        raise WrongReplacements("replacements must be in the order of the text, not empty, and must not overlap")
