"""Ranges of characters that partition a text, and the check of those that come from outside.

A position counts Unicode code points, as Python's strings do. JavaScript counts UTF-16 code units, of which characters
beyond U+FFFF (most emoji) have two. So a script that gets ranges must not call `text.slice(start, end)`. It takes
`Array.from(text).slice(start, end).join("")`, whose items are code points. To turn a position `unit` of a selection
into one of ours, it counts `Array.from(text.slice(0, unit)).length`.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from django.utils.translation import gettext as _

from annotator.infrastructure.limits import LONGEST_CUT_TEXT, MOST_SEGMENTS
from annotator.infrastructure.refusals import Refusal

SHOWN = 40


class Range(NamedTuple):
    """The characters of a segment from `start` up to, not including, `end`."""

    start: int
    end: int

    def of(self, text: str) -> str:
        return text[self.start : self.end]


class NotAPartition(Refusal):
    """Some ranges do not divide a text without gaps and overlaps; the message names the first wrong segment."""

    status = 400
    code = "not_a_partition"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.errors = {"segments": [message]}


def ranges(pairs: Sequence[Sequence[int]] | None) -> tuple[Range, ...]:
    """Returns ranges from pairs that were checked when they were stored; none where nothing is stored."""
    return tuple(Range(start, end) for start, end in pairs or ())


def whole(text: str) -> tuple[Range, ...]:
    """Returns one range over the whole text, or none if the text is empty."""
    return (Range(0, len(text)),) if text else ()


def partition(text: str, ranges: Sequence[Sequence[int]]) -> tuple[Range, ...]:
    """Returns the ranges [start, end] from outside, once they are known to partition the text exactly.

    They are numbered from 1 in refusals, and the first wrong one is named. No ranges mean that nobody has cut the text:
    then it is one segment.

    Raises:
        NotAPartition: A range is no pair of whole numbers, is empty, reversed or out of the text, leaves a gap or
            overlaps the one before, or there are too many, or the text is too long.
    """
    if not ranges:
        return whole(text)
    _check_size(text, len(ranges))
    pairs = [_pair(number, item) for number, item in enumerate(ranges, start=1)]
    for number, (before, this) in enumerate(pairwise([Range(0, 0), *pairs]), start=1):
        _check_order(number, this, length=len(text))
        _check_neighbours(number, before=before, this=this)
    if pairs[-1].end != len(text):
        raise NotAPartition(
            _("The last segment ends at %(end)s, but the text has %(length)s characters. End it there.")
            % {"end": pairs[-1].end, "length": len(text)}
        )
    return tuple(pairs)


def partition_by_texts(text: str, parts: Sequence[str]) -> tuple[Range, ...]:
    """Returns the ranges of segments that are given as texts.

    Their concatenation is the text, but white space between them may be missing. It belongs to the segment before, and
    white space at the beginning to the first. No texts mean one segment.

    Raises:
        NotAPartition: A text is empty or does not come next, the texts end early, or there are too many.
    """
    if not parts:
        return whole(text)
    _check_size(text, len(parts))
    starts = list(_starts_of(text, parts))
    return from_starts(text, starts[1:])


def from_starts(text: str, starts: Sequence[int]) -> tuple[Range, ...]:
    """Returns the ranges that begin at 0 and at the given positions, which ascend and lie inside the text."""
    return tuple(Range(start, end) for start, end in pairwise([0, *starts, len(text)])) if text else ()


def is_partition(length: int, ranges: Sequence[Range]) -> bool:
    """Returns whether the ranges, none of them empty, follow each other from 0 to the length."""
    bounds = [0, *(end for _start, end in ranges)]
    follow = all(start == bound < end for (start, end), bound in zip(ranges, bounds, strict=False))
    return follow and bounds[-1] == length


def grouped(ranges: Sequence[Range], *, most: int = MOST_SEGMENTS) -> tuple[Range, ...]:
    """Returns the ranges, or groups of equally many neighbours where there are more than `most`."""
    size = -(-len(ranges) // most)
    if size <= 1:
        return tuple(ranges)
    last = len(ranges) - 1
    return tuple(Range(ranges[at].start, ranges[min(at + size - 1, last)].end) for at in range(0, len(ranges), size))


def _check_size(text: str, count: int) -> None:
    if count > MOST_SEGMENTS:
        raise NotAPartition(
            _("The text has %(count)s segments, and at most %(most)s are accepted. Join some of them.")
            % {"count": count, "most": MOST_SEGMENTS}
        )
    if len(text) > LONGEST_CUT_TEXT and count > 1:
        raise NotAPartition(
            _("A text of more than %(most)s characters cannot be cut. Leave out its segments, or split the response.")
            % {"most": LONGEST_CUT_TEXT}
        )


def _pair(number: int, item: Sequence[int]) -> Range:
    # A boolean is an int for Python, and no position for anybody.
    if not isinstance(item, list | tuple) or len(item) != 2 or any(type(value) is not int for value in item):
        raise NotAPartition(
            _(
                "Segment %(number)s is not a pair of whole numbers. Give the position of its first character and the "
                "one after its last."
            )
            % {"number": number}
        )
    return Range(*item)


def _check_order(number: int, this: Range, *, length: int) -> None:
    values = {"number": number, "start": this.start, "end": this.end, "length": length}
    if this.start == this.end:
        raise NotAPartition(_("Segment %(number)s is empty (%(start)s to %(end)s). Leave it out.") % values)
    if this.start > this.end:
        raise NotAPartition(
            _("Segment %(number)s ends at %(end)s, before it begins (%(start)s). Swap the two numbers.") % values
        )
    if this.start < 0 or this.end > length:
        raise NotAPartition(
            _(
                "Segment %(number)s (%(start)s to %(end)s) reaches beyond the text, which has %(length)s characters. "
                "Count positions in Unicode characters (code points) from 0, not in bytes or UTF-16 units."
            )
            % values
        )


def _check_neighbours(number: int, *, before: Range, this: Range) -> None:
    values = {"number": number, "start": this.start, "end": before.end}
    if this.start > before.end:
        raise NotAPartition(
            _("Characters %(end)s to %(start)s, before segment %(number)s, belong to none. Begin it at %(end)s.")
            % values
        )
    if this.start < before.end:
        raise NotAPartition(
            _(
                "Segment %(number)s begins at %(start)s, inside the segment before it, which ends at %(end)s. Begin it "
                "at %(end)s, and give the segments in the order of the text."
            )
            % values
        )


def _starts_of(text: str, parts: Sequence[str]) -> Iterator[int]:
    at = 0
    for number, part in enumerate(parts, start=1):
        if not part.strip():
            raise NotAPartition(_("Segment %(number)s is empty. Leave it out.") % {"number": number})
        if not text.startswith(part, at):
            # White space that the parts leave out is made good: compared from the first letter of either.
            at = past_space(text, at)
            part = part.lstrip()
        if not text.startswith(part, at):
            part = part.rstrip()
        if not text.startswith(part, at):
            raise NotAPartition(
                _(
                    "Segment %(number)s does not follow the one before: the text goes on with “%(text)s”. Give the "
                    "segments in order and unchanged."
                )
                % {"number": number, "text": text[at : at + SHOWN]}
            )
        yield at
        at += len(part)
    if text[at:].strip():
        raise NotAPartition(
            _("The segments end before “%(text)s”. Add the rest of the text.") % {"text": text[at : at + SHOWN].strip()}
        )


def past_space(text: str, at: int) -> int:
    """Returns the end of the white space at a position: it belongs to the segment before."""
    while at < len(text) and text[at].isspace():
        at += 1
    return at
