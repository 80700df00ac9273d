"""The table of a response's segments with what every rater, the label and a model say of each."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from annotator.models import Label, Project, Rating, Response
from annotator.pages.rating.segments_form import (
    OTHER_CUT,
    Scores,
    SegmentCell,
    SegmentTable,
    levels_shown,
    row_of,
    score_of,
    value_of,
)
from annotator.stages.review.rating_sheets import Reviewed, Sheet, SheetRater
from annotator.stages.segmenting import Range, carried, finest_common_cut, ranges


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
            rater_levels=levels_shown(scores),
            disputed=bool(counting) and max(counting) - min(counting) > project.drop_above,
            label_level=agreed[index][place] if agreed else "",
        )

    rows = []
    for index, segment in enumerate(cut):
        row = row_of(response, index, segment, [cell(index, place) for place in range(len(aspects))])
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
    rows = [[score_of(aspect, rated_by, row) for aspect in aspects] for row in rating.segment_scores or ()]
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
