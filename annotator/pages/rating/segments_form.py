"""The table of a response's segments: a row for each segment, a cell for each aspect.

The cells are no fields of Django's: there may be a thousand of them. A form and a draft have one for each cell, comment
and quote of a segment, and one for a cut that an annotator has changed. N is the response's public number, I the
segment's index. A cell holds a level from 1, or a dash for an aspect that does not apply; scores in the data count
from 0.

    seg-N-I-ASPECT   comment-N-I   quote-N-I   cut-N

The page's script sends the cells of a response as one field, `scored-segments-N`. It holds JSON: the keys of the
`aspects`, and in `rows`, by the index of a segment, a character for each of them. A space is an answer that was taken
back, and a full stop says nothing.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import dedent
from typing import Any

from django.core.exceptions import BadRequest
from django.http import QueryDict
from django.utils.translation import gettext as _

from annotator.infrastructure.limits import LONGEST_QUOTE, MOST_ATTRIBUTES
from annotator.models import Attribute, ExpertRating, QualificationAnswer, Response
from annotator.stages.segmenting import NotAPartition, Range, partition, ranges

# How answers are written -----------------------------------------------------------------------------------

DOES_NOT_APPLY = "–"
_DASHES = {DOES_NOT_APPLY, "-", "x", "X"}


def place_of(response: int, index: int) -> str:
    """Returns the name of a segment, which ends the names of its fields."""
    return f"{response}-{index}"


def cell_name(place: str, aspect: str) -> str:
    return f"seg-{place}-{aspect}"


def cut_name(response: int) -> str:
    return f"cut-{response}"


def is_answer(value: str, aspect: Attribute) -> bool:
    if value in _DASHES:
        return True
    return len(value) == 1 and value.isascii() and value.isdigit() and 1 <= int(value) <= len(aspect.levels)


def score_in(value: str) -> int | None:
    """Returns the score of a cell that holds an answer; None where the aspect does not apply."""
    return None if value in _DASHES else int(value) - 1


def value_of(score: int | None) -> str:
    """Returns what a cell holds for a score."""
    return DOES_NOT_APPLY if score is None else str(score + 1)


def cut_value(cut: Sequence[Range]) -> str:
    """Returns segments as the form holds them: the ends of all of them."""
    return ",".join(str(end) for _start, end in cut)


def cut_in(value: str, text: str) -> tuple[Range, ...]:
    """Returns the segments of a text that the form holds; none where it holds none, or was changed by hand."""
    try:
        ends = [int(end) for end in value.split(",")] if value else []
        return partition(text, list(zip([0, *ends], ends, strict=False))) if ends else ()
    except (ValueError, NotAPartition):
        return ()


def quoted(quote: str, segment: Range, text: str) -> tuple[int, int]:
    """Returns the characters that a comment is about. A quote is as it was shown, which may not be the source."""
    words = quote.strip()[:LONGEST_QUOTE]
    at = text.find(words, segment.start, segment.end) if words else -1
    return (at, at + len(words)) if at >= 0 else (segment.start, segment.end)


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
        cell_name(place_of(number, index), aspect): value_of(score)
        for index, row in enumerate(scores)
        for aspect, score in zip(aspects, row, strict=True)
    }
    if own:
        values[cut_name(number)] = cut_value(cut)
    for start, end, words in comments:
        index = next((index for index, segment in enumerate(cut) if segment.start <= start < segment.end), 0)
        values[f"comment-{place_of(number, index)}"] = words
        if cut and (start, end) != cut[index]:
            values[f"quote-{place_of(number, index)}"] = text[start:end]
    return values


# The table -------------------------------------------------------------------------------------------------

OTHER_CUT = -1
"""In place of a score where none of the rater's segments contains this one."""
Scores = Sequence[Sequence[int | None]]
"""[segments][aspects]"""


@dataclass(frozen=True)
class SegmentCell:
    """One aspect of one segment: the answer as it was typed, and whether it is refused.

    `rater_levels` are what others said, `disputed` that it lies too far apart, and `label_level` that of the label.
    """

    aspect: Attribute
    name: str = ""
    value: str = ""
    refused: bool = False
    rater_levels: str = ""
    disputed: bool = False
    label_level: str = ""


@dataclass(frozen=True)
class SegmentRow:
    """One segment with its cells. `place` names it in the form, whose comment and quote the reader writes.

    `remarks` are the raters' comments: a rater's number, the characters that it is about, and its text. `expected` is
    the level that a model expects over all aspects.
    """

    number: int
    place: str
    segment: Range
    text: str
    cells: Sequence[SegmentCell]
    comment: str = ""
    quote: str = ""
    remarks: Sequence[tuple[int, str, str]] = ()
    expected: float | None = None

    @property
    def disputed(self) -> bool:
        return any(cell.disputed for cell in self.cells)

    @property
    def shown(self) -> str:
        """The text without its block's indentation."""
        return dedent(self.text.strip("\n"))


@dataclass(frozen=True)
class SegmentTable:
    """The table of one response. Those who rate may comment and change the cut: `own_cut` is theirs, if they did."""

    letter: str
    response: Response
    aspects: Sequence[Attribute]
    rows: Sequence[SegmentRow]
    rates: bool = False
    own_cut: Sequence[Range] = ()

    @property
    def id(self) -> str:
        return f"segments-{self.letter}"

    @property
    def cut(self) -> tuple[Range, ...]:
        return tuple(row.segment for row in self.rows)

    @property
    def cut_name(self) -> str:
        return cut_name(self.response.public_id)

    @property
    def cut_value(self) -> str:
        return cut_value(self.own_cut)

    @property
    def highest(self) -> int:
        return max(len(aspect.levels) for aspect in self.aspects)

    @property
    def asked(self) -> int:
        return len(self.rows) * len(self.aspects)

    @property
    def answered(self) -> int:
        return sum(bool(cell.value) for row in self.rows for cell in row.cells)

    def with_answers(self, values: Mapping[str, Any]) -> "SegmentTable":
        """Returns the table with a form's values in its cells."""

        def filled(row: SegmentRow, cell: SegmentCell) -> SegmentCell:
            name = cell_name(row.place, cell.aspect.key)
            return replace(cell, name=name, value=_text(values, name).strip())

        return replace(self, rows=[replace(row, cells=[filled(row, cell) for cell in row.cells]) for row in self.rows])

    def fault(self) -> str:
        """Returns what is wrong with the answers; empty if nothing is."""
        every = ((row.number, cell) for row in self.rows for cell in row.cells)
        refused = [(number, cell) for number, cell in every if not is_answer(cell.value, cell.aspect)]
        if not refused:
            return ""
        number, first = refused[0]
        words = {
            "letter": self.letter,
            "count": len(refused),
            "number": number,
            "aspect": first.aspect.shown_name,
            "levels": len(first.aspect.levels),
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
        return tuple({cell.aspect.key: score_in(cell.value) for cell in row.cells} for row in self.rows)

    def changed_cut(self) -> tuple[tuple[int, int], ...]:
        """Returns the reader's own segments; none where they are the response's."""
        own = tuple(self.own_cut)
        return () if own == ranges(self.response.segments) else tuple((start, end) for start, end in own)

    def comments(self) -> tuple[tuple[int, int, str], ...]:
        """Returns the comments with their places: that of the quoted text, or else the segment."""
        return tuple(
            (*quoted(row.quote, row.segment, self.response.text), row.comment.strip())
            for row in self.rows
            if row.comment.strip()
        )


def _text(values: Mapping[str, Any], name: str) -> str:
    return str(values.get(name) or "")


def rating_table(
    letter: str, response: Response, aspects: Sequence[Attribute], values: Mapping[str, Any], *, refuses: bool = False
) -> SegmentTable:
    """Returns the table of somebody who rates, filled from a form's values by name."""
    own = cut_in(_text(values, cut_name(response.public_id)), response.text)

    def cell(place: str, aspect: Attribute) -> SegmentCell:
        name = cell_name(place, aspect.key)
        value = _text(values, name).strip()
        return SegmentCell(aspect, name, value, refused=refuses and not is_answer(value, aspect))

    rows = []
    for index, segment in enumerate(own or ranges(response.segments)):
        place = place_of(response.public_id, index)
        comment, quote = (_text(values, f"{kind}-{place}") for kind in ("comment", "quote"))
        row = row_of(response, index, segment, [cell(place, aspect) for aspect in aspects])
        rows.append(replace(row, comment=comment, quote=quote) if comment or quote else row)
    return SegmentTable(letter, response, aspects, rows, rates=True, own_cut=own)


def row_of(response: Response, index: int, segment: Range, cells: Sequence[SegmentCell]) -> SegmentRow:
    return SegmentRow(index + 1, place_of(response.public_id, index), segment, segment.of(response.text), cells)


def practice_table(
    letter: str, response: Response, aspects: Sequence[Attribute], mine: QualificationAnswer
) -> SegmentTable | None:
    """Returns the levels of a practice task's answer, each followed by the experts'; None where there are none."""
    experts: ExpertRating = response.expert_rating
    if mine.segment_scores is None or experts.segment_scores is None:
        return None

    def cell(aspect: Attribute, own: Sequence[int | None], theirs: Sequence[int | None]) -> SegmentCell:
        pair = [score_of(aspect.key, mine.aspects, own), score_of(aspect.key, experts.aspects, theirs)]
        return SegmentCell(aspect, rater_levels=levels_shown(pair), disputed=pair[0] != pair[1])

    pairs = zip(ranges(response.segments), mine.segment_scores, experts.segment_scores, strict=True)
    rows = [
        row_of(response, index, segment, [cell(aspect, own, theirs) for aspect in aspects])
        for index, (segment, own, theirs) in enumerate(pairs)
    ]
    return SegmentTable(letter, response, aspects, rows)


def score_of(aspect: str, aspects: Sequence[str], row: Sequence[int | None]) -> int | None:
    return row[aspects.index(aspect)] if aspect in aspects else None


def levels_shown(scores: Sequence[int | None]) -> str:
    return " ".join("…" if score == OTHER_CUT else value_of(score) for score in scores)


# What the script sends -------------------------------------------------------------------------------------

PREFIX = "scored-segments-"
UNSAID = "."
_OURS = ("csrfmiddlewaretoken", "changed")
_KEY = re.compile(r"[a-z][a-z0-9_]*")


def by_cell(sent: QueryDict) -> QueryDict:
    """Returns the form with a field for each cell. What `changed` names of the fields for responses, it names by cell.

    Raises:
        BadRequest: such a field holds something else than the page writes.
    """
    folded = [name for name in sent if name.startswith(PREFIX)]
    if not folded:
        return sent
    form = sent.copy()
    changed = [name for name in form.getlist("changed") if name not in folded]
    for name in folded:
        # A field with several values: the last one counts, as for all others.
        response = name.removeprefix(PREFIX)
        aspects, rows = _read(str(form.pop(name)[-1]))
        cells = {
            cell_name(f"{response}-{index}", aspect): value.strip()
            for index, row in rows.items()
            for aspect, value in zip(aspects, row, strict=False)
            if value != UNSAID
        }
        for cell, value in cells.items():
            form[cell] = value
        changed += cells if name in sent.getlist("changed") else []
    form.setlist("changed", changed)
    return form


def half_filled(sent: QueryDict) -> tuple[dict[str, Any], list[str]]:
    """Returns a half-filled form as drafts keep it, and the names of the fields that the page says have changed.

    A changed field that was not sent has no answer any more. Raises BadRequest as `by_cell` does.
    """
    form = by_cell(sent)
    changed = form.getlist("changed")
    # Check boxes alone have several values.
    values = {name: values if _is_boxes(name) else values[-1] for name, values in form.lists() if name not in _OURS}
    return {name: [] if _is_boxes(name) else "" for name in changed} | values, changed


def _is_boxes(name: str) -> bool:
    return name.startswith("checks-")


def _read(text: str) -> tuple[list[str], dict[str, str]]:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise BadRequest("the segments are no JSON") from wrong
    aspects, rows = (given.get("aspects"), given.get("rows")) if isinstance(given, dict) else (None, None)
    if not isinstance(aspects, list) or not isinstance(rows, dict):
        raise BadRequest("the segments are no object of aspects and rows")
    if not all(isinstance(aspect, str) and _KEY.fullmatch(aspect) for aspect in aspects):
        raise BadRequest("the segments are no object of aspects and rows")
    if len(aspects) > MOST_ATTRIBUTES or not all(
        index.isdecimal() and isinstance(row, str) and len(row) <= MOST_ATTRIBUTES for index, row in rows.items()
    ):
        raise BadRequest("a row of the segments is no text by its index")
    return aspects, rows
