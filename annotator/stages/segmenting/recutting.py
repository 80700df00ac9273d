"""Changes a cut: joins and splits segments, also at marks; finds the finest common cut, and carries values onto it."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

import regex
from django.utils.translation import gettext as _

from annotator.infrastructure.limits import MOST_SEGMENTS
from annotator.infrastructure.refusals import Refusal
from annotator.stages.segmenting.ranges import Range, from_starts, past_space

LONGEST_CHARACTER = 64
"""Most code points of what readers see as one character. Longer ones can be split."""

Value = TypeVar("Value")


class CannotRecut(Refusal):
    """The segments cannot be joined or split as requested; the message says why."""

    status = 400
    code = "cannot_recut"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.errors = {"segments": [message]}


def joined(cut: Sequence[Range], first: int, *, last: int) -> tuple[Range, ...]:
    """Returns the cut with the segments `first` to `last`, which are indices from 0, as one.

    Raises:
        CannotRecut: There are no two such segments.
    """
    if not 0 <= first < last < len(cut):
        raise CannotRecut(
            _("Segments %(first)s to %(last)s cannot be joined. Choose two or more of the segments 1 to %(count)s.")
            % {"first": first + 1, "last": last + 1, "count": len(cut)}
        )
    return (*cut[:first], Range(cut[first].start, cut[last].end), *cut[last + 1 :])


def split(cut: Sequence[Range], text: str, *, at: int) -> tuple[Range, ...]:
    """Returns the cut with one more boundary. White space there goes to the first of the two new segments.

    Raises:
        CannotRecut: The position is at the beginning or the end of a segment, outside of the text, or inside what
            readers see as one character; one part would be empty; or there are too many segments already.
    """
    index = next((number for number, segment in enumerate(cut) if segment.start < at < segment.end), None)
    if index is None:
        raise CannotRecut(
            _("No segment can be split at %(at)s. Choose a place between two characters of one segment.") % {"at": at}
        )
    segment = cut[index]
    at = min(past_space(text, at), segment.end)
    if at == segment.end or not text[segment.start : at].strip():
        raise CannotRecut(_("One of the two parts would have no words. Choose another place."))
    # Readers see a grapheme cluster, such as a letter with accents or a joined emoji, as one character.
    near = regex.finditer(r"\X", text, pos=max(0, at - LONGEST_CHARACTER), endpos=at + LONGEST_CHARACTER)
    if at not in {match.start() for match in near}:
        raise CannotRecut(_("The place is inside a character. Choose the place before or after it."))
    if len(cut) >= MOST_SEGMENTS:
        raise CannotRecut(
            _("The text has %(most)s segments, and no more are accepted. Join some first.") % {"most": MOST_SEGMENTS}
        )
    return (*cut[:index], Range(segment.start, at), Range(at, segment.end), *cut[index + 1 :])


def finest_common_cut(cuts: Sequence[Sequence[Range]]) -> tuple[Range, ...]:
    """Returns the cut with every boundary of the given cuts of one text. None of its segments crosses one of theirs.

    Raises:
        Refusal: The cuts end at different positions.
    """
    if len({cut[-1].end if cut else 0 for cut in cuts}) > 1:
        raise Refusal(
            _("These segments belong to texts of different lengths. Compare the ratings of one version of the text."),
            code="different_texts",
        )
    bounds = sorted({bound for cut in cuts for segment in cut for bound in segment})
    return tuple(Range(start, end) for start, end in pairwise(bounds))


def cut_at_marks(text: str, cut: Sequence[Range], marks: Sequence[Range]) -> tuple[Range, ...]:
    """Returns a cut of the text that is also cut at the ends of the marks."""
    bounds = {past_space(text, bound) for mark in marks for bound in mark} - {0, len(text)}
    return finest_common_cut([cut, from_starts(text, sorted(bounds))])


def covered(text: str, cut: Sequence[Range], mark: Range) -> Iterator[int]:
    """Yields the places of the segments that lie within the mark, but for the white space at their ends."""
    for place, (start, end) in enumerate(cut):
        if mark.start <= start and start + len(text[start:end].rstrip()) <= mark.end:
            yield place


def carried(values: Sequence[Value], cut: Sequence[Range], *, onto: Sequence[Range]) -> tuple[Value, ...]:
    """Returns a value for each segment of a finer cut: that of the segment of `cut` which contains it.

    Raises:
        Refusal: A segment of the finer cut lies in no segment of `cut`.
        ValueError: The cut has another number of segments than there are values.
    """
    if len(values) != len(cut):
        raise ValueError(f"{len(values)} values for {len(cut)} segments")
    result: list[Value] = []
    at = 0
    for part in onto:
        while at < len(cut) and cut[at].end <= part.start:
            at += 1
        if at == len(cut) or not cut[at].start <= part.start < part.end <= cut[at].end:
            raise Refusal(
                _("Characters %(start)s to %(end)s lie in no single rated segment. Use the finest common cut.")
                % {"start": part.start, "end": part.end},
                code="not_finer",
            )
        result.append(values[at])
    return tuple(result)
