"""Segments of a response: ranges of its characters, and the tokens that each of them owns. No torch here.

The ranges are half-open, count code points, and divide the text without a gap or an overlap (HelpSteer-2D, 2D-DPO,
arXiv 2410.19720).
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any


def on_scale(name: str, value: Any, levels: int) -> float:
    """Returns the value of a row for this attribute or aspect; raises ValueError unless it is on its scale."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= levels - 1:
        raise ValueError(f"{name} is {json.dumps(value)}, not a number from 0 to {levels - 1}")
    return float(value)


Range = tuple[int, int]
NOWHERE: Range = (0, 0)
"""The tokens of a segment that owns none."""


@dataclass(frozen=True)
class Segment:
    """The characters start..end of a response, with the means of their kept ratings by aspect.

    An aspect is absent where it does not apply or nobody has rated it.
    """

    start: int
    end: int
    scores: Mapping[str, float]


def segments_of(row: Mapping[str, Any], length: int, aspects: Mapping[str, int]) -> tuple[Segment, ...]:
    """Parses the segments of one response; `length` is the number of characters of its text.

    aspects: the number of levels by aspect, in the order of the row's scores. Raises KeyError or ValueError for a row
    that cannot be used.
    """
    ranges, scores = row["segments"], row["segment_scores"]
    try:
        ranges = ranges_of(ranges, length)
        if not isinstance(scores, list) or len(scores) != len(ranges):
            raise ValueError(f"segment_scores must be a list with one list for each of the {len(ranges)} segments")
        return tuple(Segment(*place, _scores(values, aspects)) for place, values in zip(ranges, scores, strict=True))
    except ValueError as error:
        raise ValueError(f"response {row['id']}: {error}") from None


def _scores(values: Any, aspects: Mapping[str, int]) -> dict[str, float]:
    if not isinstance(values, list) or len(values) != len(aspects):
        raise ValueError(
            f"segment_scores: {json.dumps(values)[:40]} does not hold a number or null for each of {', '.join(aspects)}"
        )
    known = ((name, value) for name, value in zip(aspects, values, strict=True) if value is not None)
    return {name: on_scale(f"segment_scores: {name}", value, aspects[name]) for name, value in known}


def ranges_of(value: Any, length: int) -> tuple[Range, ...]:
    """Returns the ranges of a row, which divide a text of so many characters; raises ValueError if they do not."""
    if not isinstance(value, list) or not all(
        isinstance(one, list) and len(one) == 2 and all(type(place) is int for place in one) for one in value
    ):
        raise ValueError("segments must be a list of [start, end], two whole numbers each, counted in code points")
    place = 0
    for start, end in value:
        if start != place:
            what = "leaves a gap after" if start > place else "overlaps"
            raise ValueError(
                f"segments: [{start}, {end}] {what} what ends at {place}. Let each range begin where the one before "
                "it ends, and the first at 0"
            )
        if end <= start:
            raise ValueError(f"segments: [{start}, {end}] is empty. Leave it out, as each range must hold a character")
        place = end
    if place != length:
        raise ValueError(
            f"segments end at {place}, but the text has {length} code points. Let the last range end there"
        )
    return tuple((start, end) for start, end in value)


def token_ranges(spans: Sequence[Range], segments: Sequence[Range], *, first: int) -> tuple[Range, ...]:
    """Returns for each segment the tokens start..end that it owns, NOWHERE if none.

    spans: the characters that each token holds, in order; `first` is the number of the first of these tokens. A token
    across a boundary belongs to the segment of which it holds more characters, of equal ones to the earlier. A token
    that holds no character of the response, such as the one that ends the turn, belongs to none.
    """
    ranges = [NOWHERE] * len(segments)
    ends = [end for _, end in segments]
    for token, span in enumerate(spans, start=first):
        number = _owner(span, segments, ends)
        if number is not None:
            ranges[number] = (token if ranges[number] == NOWHERE else ranges[number][0], token + 1)
    return tuple(ranges)


def _owner(span: Range, segments: Sequence[Range], ends: Sequence[int]) -> int | None:
    """Returns the number of the segment that a token belongs to; None if it holds no character of any."""
    start, end = span
    owner, most = None, 0
    for number in range(bisect_right(ends, start), len(segments)):
        if segments[number][0] >= end:
            break
        overlap = min(end, ends[number]) - max(start, segments[number][0])
        if overlap > most:
            owner, most = number, overlap
    return owner


def rendered_part(rendered: str, response: str) -> Range | None:
    """Returns the characters of the response that a chat template has kept: all, or all but the blanks around it.

    rendered: the text from the response's first character on. None where the template has changed the response
    otherwise: then nothing says which of its tokens belong to which segment.
    """
    if rendered.startswith(response):
        return 0, len(response)
    stripped = response.strip()
    start = len(response) - len(response.lstrip())
    return (start, start + len(stripped)) if rendered.startswith(stripped) else None


def within(segments: Sequence[Range], part: Range) -> list[Range]:
    """Returns what is left of the segments within a part of the text; a range may become empty."""
    return [(max(start, part[0]), min(end, part[1])) for start, end in segments]


def lost(segments: Sequence[Range]) -> int:
    """Returns how many segments own no token."""
    return sum(start == end for start, end in segments)


def mean_scores(segments: Sequence[Segment]) -> dict[str, float]:
    """Returns by aspect the mean over the segments that have a score for it."""
    names = dict.fromkeys(chain.from_iterable(segment.scores for segment in segments))
    known = {name: [s.scores[name] for s in segments if name in s.scores] for name in names}
    return {name: sum(values) / len(values) for name, values in known.items()}
