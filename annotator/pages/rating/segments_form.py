"""The table of a response's segments: a row for each segment, a cell for each aspect.

`rating_table` is for those who rate, `review_tables` for those who compare ratings, `practice_table` for those who see
their own answers beside the experts'. The cells are no fields of Django's: there may be a thousand of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import dedent
from typing import Any

from django.utils.translation import gettext as _

from annotator.models import Attribute, ExpertRating, Label, Project, QualificationAnswer, Rating, Response
from annotator.pages.rating.segment_cells import (
    cell_name,
    cut_in,
    cut_name,
    cut_value,
    is_answer,
    place_of,
    quoted,
    score_in,
    value_of,
)
from annotator.stages.review.rating_sheets import Reviewed, Sheet, SheetRater
from annotator.stages.segmenting import Range, carried, finest_common_cut, ranges

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
        row = _row(response, index, segment, [cell(place, aspect) for aspect in aspects])
        rows.append(replace(row, comment=comment, quote=quote) if comment or quote else row)
    return SegmentTable(letter, response, aspects, rows, rates=True, own_cut=own)


def _row(response: Response, index: int, segment: Range, cells: Sequence[SegmentCell]) -> SegmentRow:
    return SegmentRow(index + 1, place_of(response.public_id, index), segment, segment.of(response.text), cells)


def practice_table(
    letter: str, response: Response, aspects: Sequence[Attribute], mine: QualificationAnswer
) -> SegmentTable | None:
    """Returns the levels of a practice task's answer, each followed by the experts'; None where there are none."""
    experts: ExpertRating = response.expert_rating
    if mine.segment_scores is None or experts.segment_scores is None:
        return None

    def cell(aspect: Attribute, own: Sequence[int | None], theirs: Sequence[int | None]) -> SegmentCell:
        pair = [_score(aspect.key, mine.aspects, own), _score(aspect.key, experts.aspects, theirs)]
        return SegmentCell(aspect, rater_levels=_levels(pair), disputed=pair[0] != pair[1])

    pairs = zip(ranges(response.segments), mine.segment_scores, experts.segment_scores, strict=True)
    rows = [
        _row(response, index, segment, [cell(aspect, own, theirs) for aspect in aspects])
        for index, (segment, own, theirs) in enumerate(pairs)
    ]
    return SegmentTable(letter, response, aspects, rows)


def _score(aspect: str, aspects: Sequence[str], row: Sequence[int | None]) -> int | None:
    return row[aspects.index(aspect)] if aspect in aspects else None


def _levels(scores: Sequence[int | None]) -> str:
    return " ".join("…" if score == OTHER_CUT else value_of(score) for score in scores)


# What all raters said --------------------------------------------------------------------------------------


def review_tables(
    shown: Reviewed,
    project: Project,
    *,
    finest: bool,
    labels: Mapping[int, Label] = {},
    expected: Mapping[int, Sequence[Sequence[float | None]]] = {},
) -> list[SegmentTable]:
    """Returns each response's table with the levels of all raters; none where no segments are rated, or cut yet.

    It has the response's own segments, or the `finest` common cut of all its raters. By its own segments, a rater who
    has cut the response in another way has the scores of that segment of theirs which contains the response's. `labels`
    and the scores that a model `expected` are by response.
    """
    if not project.aspects() or any(sheet.response.segments is None for sheet in shown.sheets):
        return []
    return [
        _review_table(sheet, shown, project, finest, labels.get(sheet.response.pk), expected.get(sheet.response.pk, ()))
        for sheet in shown.sheets
    ]


def _review_table(
    sheet: Sheet,
    shown: Reviewed,
    project: Project,
    finest: bool,
    label: Label | None,
    expected: Sequence[Sequence[float | None]],
) -> SegmentTable:
    response, aspects, own = sheet.response, project.aspects(), ranges(sheet.response.segments)
    rated = [
        (rater, rating if rating and rating.segment_scores is not None else None)
        for rater, rating in zip(shown.raters, sheet.ratings, strict=True)
    ]
    others = [ranges(rating.cut) for _rater, rating in rated if rating and rating.cut]
    cut = finest_common_cut([own, *others]) if finest and others else own
    keys = [aspect.key for aspect in aspects]
    said = [_scores(rating, rater.annotation.aspects, keys, own, cut) if rating else None for rater, rating in rated]
    agreed = _label_scores(label, keys, cut, response)

    def cell(index: int, place: int) -> SegmentCell:
        scores = [of_rater[index][place] if of_rater else None for of_rater in said]
        known = [(rater, score) for (rater, _rating), score in zip(rated, scores, strict=True) if score is not None]
        counting = [score for rater, score in known if rater.counts and score != OTHER_CUT]
        return SegmentCell(
            aspects[place],
            rater_levels=_levels(scores),
            disputed=bool(counting) and max(counting) - min(counting) > project.drop_above,
            label_level=agreed[index][place] if agreed else "",
        )

    rows = []
    for index, segment in enumerate(cut):
        row = _row(response, index, segment, [cell(index, place) for place in range(len(aspects))])
        scores = [score for score in expected[index] if score is not None] if len(expected) == len(cut) else []
        mean = 1 + sum(scores) / len(scores) if scores else None
        rows.append(replace(row, remarks=_remarks(segment, response, rated), expected=mean))
    return SegmentTable(sheet.letter, response, aspects, rows)


def _label_scores(
    label: Label | None, aspects: Sequence[str], cut: Sequence[Range], response: Response
) -> list[list[str]]:
    """Returns the levels of the label; none where it has other segments."""
    if label is None or label.segment_scores is None or ranges(label.cut or response.segments) != cut:
        return []
    return [
        [value_of(row[label.aspects.index(aspect)]) if aspect in label.aspects else "" for aspect in aspects]
        for row in label.segment_scores
    ]


def _scores(
    rating: Rating, rated_by: Sequence[str], aspects: Sequence[str], own: Sequence[Range], cut: Sequence[Range]
) -> Scores:
    rows = [[_score(aspect, rated_by, row) for aspect in aspects] for row in rating.segment_scores or ()]
    theirs = ranges(rating.cut) if rating.cut else own
    if theirs == cut:
        return rows
    if cut != own:
        return carried(rows, theirs, onto=cut)
    containing = [
        next((index for index, one in enumerate(theirs) if one.start <= segment.start and segment.end <= one.end), None)
        for segment in own
    ]
    return [[OTHER_CUT] * len(aspects) if index is None else rows[index] for index in containing]


def _remarks(
    segment: Range, response: Response, rated: Sequence[tuple[SheetRater, Rating | None]]
) -> list[tuple[int, str, str]]:
    return [
        (rater.number, "" if (start, end) == segment else response.text[start:end], text)
        for rater, rating in rated
        if rating
        for start, end, text in rating.comments
        if segment.start <= start < segment.end
    ]
