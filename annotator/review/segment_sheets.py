"""What all raters said of the segments of a response, side by side, with those on which they differ."""

from collections.abc import Sequence
from dataclasses import dataclass

from annotator.models import Project, Rating
from annotator.review.rating_sheets import Reviewed, Sheet
from annotator.segmenting import Range, carried, finest_common_cut, ranges

OTHERWISE = -1
"""In place of a score: the rater has cut the response so that none of their segments holds this one."""


@dataclass(frozen=True)
class SegmentScores:
    """The scores of one aspect of one segment, one for each rater: None where it does not apply or was not rated.

    `spread` is that of the raters who count, and `wide` says that it is too large for the project.
    """

    scores: Sequence[int | None]
    spread: int | None
    wide: bool


@dataclass(frozen=True)
class SegmentSheet:
    """The segments of a response with what was said of them: by segment, then by aspect in the rubric's order.

    `comments` are by segment: the rater's number, the characters that the comment is about, and its text.
    """

    cut: Sequence[Range]
    scores: Sequence[Sequence[SegmentScores]]
    comments: Sequence[Sequence[tuple[int, str, str]]]

    def is_disputed(self, segment: int) -> bool:
        return any(scores.wide for scores in self.scores[segment])


def segment_sheet(sheet: Sheet, shown: Reviewed, project: Project, *, finest: bool) -> SegmentSheet:
    """Returns the sheet of a response by its own segments, or by the finest common cut of all its raters.

    By its own segments, a rater who has cut the response in another way has the scores of that segment of theirs which
    holds the response's, or OTHERWISE where none does.
    """
    own = ranges(sheet.response.segments)
    ratings = [rating if rating and rating.segment_scores is not None else None for rating in sheet.ratings]
    others = [ranges(rating.cut) for rating in ratings if rating and rating.cut]
    cut = finest_common_cut([own, *others]) if finest and others else own
    aspects = [aspect.key for aspect in project.aspects()]
    by_rater = [
        _scores(rating, rater.annotation.aspects, aspects, own, cut) if rating else None
        for rater, rating in zip(shown.raters, ratings, strict=True)
    ]
    counts = [rater.counts for rater in shown.raters]
    table = [
        [
            _compared([rows[index][place] if rows else None for rows in by_rater], counts, project)
            for place in range(len(aspects))
        ]
        for index in range(len(cut))
    ]
    return SegmentSheet(cut, table, [_comments(segment, sheet, shown, ratings) for segment in cut])


def segment_sheets(shown: Reviewed, project: Project, *, finest: bool) -> list[SegmentSheet]:
    """Returns the sheet of each response; none where whole responses alone are rated, or nobody has cut them yet."""
    if not project.aspects() or any(sheet.response.segments is None for sheet in shown.sheets):
        return []
    return [segment_sheet(sheet, shown, project, finest=finest) for sheet in shown.sheets]


def _scores(
    rating: Rating, rated_by: Sequence[str], aspects: Sequence[str], own: Sequence[Range], cut: Sequence[Range]
) -> Sequence[Sequence[int | None]] | None:
    places = [rated_by.index(aspect) if aspect in rated_by else None for aspect in aspects]
    rows = [[None if place is None else row[place] for place in places] for row in rating.segment_scores or ()]
    theirs = ranges(rating.cut) if rating.cut else own
    if theirs == cut:
        return rows
    if cut != own:
        return carried(rows, theirs, onto=cut)
    holding = [_holding(segment, theirs) for segment in own]
    return [[OTHERWISE] * len(aspects) if place is None else rows[place] for place in holding]


def _holding(segment: Range, cut: Sequence[Range]) -> int | None:
    places = (place for place, one in enumerate(cut) if one.start <= segment.start and segment.end <= one.end)
    return next(places, None)


def _compared(scores: Sequence[int | None], counts: Sequence[bool], project: Project) -> SegmentScores:
    known = ((score, is_in) for score, is_in in zip(scores, counts, strict=True) if score not in (None, OTHERWISE))
    counting = [score for score, is_in in known if is_in and score is not None]
    spread = max(counting) - min(counting) if counting else None
    return SegmentScores(scores, spread, wide=spread is not None and spread > project.drop_above)


def _comments(
    segment: Range, sheet: Sheet, shown: Reviewed, ratings: Sequence[Rating | None]
) -> list[tuple[int, str, str]]:
    return [
        (rater.number, "" if (start, end) == segment else sheet.response.text[start:end], text)
        for rater, rating in zip(shown.raters, ratings, strict=True)
        if rating
        for start, end, text in rating.comments
        if segment.start <= start < segment.end
    ]
