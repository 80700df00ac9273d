"""The table in which the segments of a response are rated: a row for each segment, a cell for each aspect.

A cell is a text box for one digit: levels count from 1 on the page, and from 0 in the data. A dash stands for an aspect
that does not apply. The cells are no fields of Django's: there may be a thousand of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from textwrap import dedent
from typing import Any

from django.utils.translation import gettext as _

from annotator.limits import LONGEST_QUOTE
from annotator.models import Attribute, Label, Response
from annotator.review.segment_sheets import OTHERWISE, SegmentSheet
from annotator.segmenting import NotAPartition, Range, partition, ranges

DOES_NOT_APPLY = "–"
_DASHES = {DOES_NOT_APPLY, "-", "x", "X"}


@dataclass(frozen=True)
class Cell:
    """The answer about one aspect of one segment, as it was typed, and whether it is refused.

    `said` are the raters' levels, for a reviewer, and `disputed` says that they lie too far apart. `agreed` is that of
    the label.
    """

    aspect: Attribute
    name: str
    value: str
    refused: bool
    said: str = ""
    disputed: bool = False
    agreed: str = ""

    @property
    def levels(self) -> int:
        return len(self.aspect.levels)


@dataclass(frozen=True)
class Row:
    """One segment with its text, its cells and its comment. `shown` is the text without its block's indentation.

    `expected` is the level that a model expects, over all aspects, of `highest`.
    """

    number: int
    text: str
    cells: Sequence[Cell]
    comment_name: str
    comment: str
    quote_name: str
    quote: str
    comments: Sequence[tuple[int, str, str]] = ()
    expected: float | None = None
    highest: int = 0

    @property
    def disputed(self) -> bool:
        return any(cell.disputed for cell in self.cells)

    @property
    def shown(self) -> str:
        return dedent(self.text.strip("\n"))


class SegmentTable:
    """The table of one response, filled from a form's values by name.

    `said` is what raters said of its segments, for a reviewer, whose table has no comments of its own.
    """

    def __init__(
        self,
        letter: str,
        response: Response,
        aspects: Sequence[Attribute],
        values: Mapping[str, Any],
        *,
        refuses: bool = False,
        said: SegmentSheet | None = None,
        expected: Sequence[Sequence[float | None]] = (),
        label: Label | None = None,
    ) -> None:
        self.letter, self.response, self.aspects, self.said = letter, response, aspects, said
        self._values, self._refuses, self._expected, self._label = values, refuses, expected, label

    @property
    def id(self) -> str:
        return f"segments-{self.letter}"

    @property
    def cut_name(self) -> str:
        return f"cut-{self.response.public_id}"

    @cached_property
    def cut(self) -> tuple[Range, ...]:
        """The segments: those of the form, where the annotator has changed them, or else the response's own."""
        return self._own_cut() or (tuple(self.said.cut) if self.said else ranges(self.response.segments))

    def _own_cut(self) -> tuple[Range, ...]:
        given = self._text(self.cut_name)
        if not given:
            return ()
        try:
            ends = [int(end) for end in given.split(",")]
            return partition(self.response.text, list(zip([0, *ends], ends, strict=False)))
        except (ValueError, NotAPartition):
            return ()  # changed by hand: the response's own segments are rated instead

    @property
    def cut_value(self) -> str:
        return cut_value(self._own_cut())

    @cached_property
    def rows(self) -> list[Row]:
        return [self._row(index, segment) for index, segment in enumerate(self.cut)]

    def _row(self, index: int, segment: Range) -> Row:
        comment, quote = f"comment-{self._place(index)}", f"quote-{self._place(index)}"
        return Row(
            index + 1,
            segment.of(self.response.text),
            [self._cell(index, place) for place in range(len(self.aspects))],
            comment,
            self._text(comment),
            quote,
            self._text(quote),
            self.said.comments[index] if self.said else (),
            self._level_expected(index),
            max(len(aspect.levels) for aspect in self.aspects),
        )

    def _level_expected(self, index: int) -> float | None:
        if len(self._expected) != len(self.cut):
            return None
        scores = [score for score in self._expected[index] if score is not None]
        return 1 + sum(scores) / len(scores) if scores else None

    def _cell(self, index: int, place: int) -> Cell:
        aspect = self.aspects[place]
        name = f"seg-{self._place(index)}-{aspect.key}"
        value = self._text(name).strip()
        is_refused = self._refuses and not _is_answer(value, aspect)
        if self.said is None:
            return Cell(aspect, name, value, is_refused)
        said = self.said.scores[index][place]
        return Cell(aspect, name, value, is_refused, _levels(said.scores), said.wide, self._agreed(index, aspect.key))

    def _agreed(self, index: int, aspect: str) -> str:
        """Returns the level of the label; empty where it has none of these segments."""
        label = self._label
        if label is None or label.segment_scores is None or aspect not in label.aspects:
            return ""
        if ranges(label.cut or self.response.segments) != self.cut:
            return ""
        return _levels([label.segment_scores[index][label.aspects.index(aspect)]])

    def _place(self, index: int) -> str:
        return f"{self.response.public_id}-{index}"

    def _text(self, name: str) -> str:
        return str(self._values.get(name) or "")

    @property
    def asked(self) -> int:
        return len(self.cut) * len(self.aspects)

    @property
    def answered(self) -> int:
        return sum(bool(cell.value) for row in self.rows for cell in row.cells)

    def fault(self) -> str:
        """Returns what is wrong with the answers; empty if nothing is."""
        every = ((row.number, cell) for row in self.rows for cell in row.cells)
        refused = [(number, cell) for number, cell in every if not _is_answer(cell.value, cell.aspect)]
        if not refused:
            return ""
        number, first = refused[0]
        words = {
            "letter": self.letter,
            "count": len(refused),
            "number": number,
            "aspect": first.aspect.shown_name,
            "levels": first.levels,
        }
        if first.value:
            text = _("Response %(letter)s, segment %(number)s, %(aspect)s: type a digit up to %(levels)s, or a dash.")
        else:
            text = _(
                "Response %(letter)s, answers about segments that are missing: %(count)s. The first is %(aspect)s of "
                "segment %(number)s."
            )
        return text % words

    def scores(self) -> tuple[Mapping[str, int | None], ...]:
        """Returns the answers of a table without a fault, from 0, and None where an aspect does not apply."""
        return tuple({cell.aspect.key: _score(cell.value) for cell in row.cells} for row in self.rows)

    def own_cut(self) -> tuple[tuple[int, int], ...]:
        """Returns the annotator's own segments; none where they are the response's."""
        own = self._own_cut()
        return () if own == ranges(self.response.segments) else tuple((start, end) for start, end in own)

    def comments(self) -> tuple[tuple[int, int, str], ...]:
        """Returns the comments with their places: that of the quoted text, or else the segment."""
        return tuple(
            (*_place_of(row.quote, segment, self.response.text), row.comment.strip())
            for row, segment in zip(self.rows, self.cut, strict=True)
            if row.comment.strip()
        )


def cut_value(cut: Sequence[Range]) -> str:
    """Returns segments as the form holds them: the ends of all of them."""
    return ",".join(str(end) for _start, end in cut)


def _levels(scores: Sequence[int | None]) -> str:
    """Returns the levels of all raters in their order."""
    signs = {None: DOES_NOT_APPLY, OTHERWISE: "…"}
    return " ".join(signs.get(score) or str((score or 0) + 1) for score in scores)


def filled_segments(
    number: int,
    aspects: Sequence[str],
    scores: Sequence[Sequence[int | None]],
    *,
    cut: Sequence[Range] = (),
    own: bool = False,
    comments: Sequence[Sequence[Any]] = (),
    text: str = "",
) -> dict[str, str]:
    """Returns values of the form from stored scores [segments][aspects] of the response with this public number."""
    values = {
        f"seg-{number}-{index}-{aspect}": DOES_NOT_APPLY if score is None else str(score + 1)
        for index, row in enumerate(scores)
        for aspect, score in zip(aspects, row, strict=True)
    }
    if own:
        values[f"cut-{number}"] = cut_value(cut)
    for start, end, words in comments:
        index = next((index for index, segment in enumerate(cut) if segment.start <= start < segment.end), 0)
        values[f"comment-{number}-{index}"] = words
        if cut and (start, end) != cut[index]:
            values[f"quote-{number}-{index}"] = text[start:end]
    return values


def _is_answer(value: str, aspect: Attribute) -> bool:
    if value in _DASHES:
        return True
    return len(value) == 1 and value.isascii() and value.isdigit() and 1 <= int(value) <= len(aspect.levels)


def _score(value: str) -> int | None:
    return None if value in _DASHES else int(value) - 1


def _place_of(quote: str, segment: Range, text: str) -> tuple[int, int]:
    """Returns the characters that a comment is about. A quote is as it was shown, which may not be the source."""
    words = quote.strip()[:LONGEST_QUOTE]
    at = text.find(words, segment.start, segment.end) if words else -1
    return (at, at + len(words)) if at >= 0 else (segment.start, segment.end)
