"""Moves segments and what is said of them when parts of a response are erased. A segment may go, none is misplaced."""

from collections.abc import Callable, Sequence
from typing import Any

from annotator.models import Adjudication, Draft, ExpertRating, Label, QualificationAnswer, Rating, Response, Task
from annotator.segmenting import Range, Replacement, moved, ranges

Replace = Callable[[str], Sequence[Replacement]]
Rows = list[Any]
_OF_A_SEGMENT = ("seg", "comment", "quote")


def move_segments(task: Task, replace: Replace, erase: Callable[[str], str]) -> None:
    """Moves the segments of the task's responses, whose texts are still the old ones.

    `replace` says what of a text is replaced, and `erase` returns the new text.
    """
    for response in task.responses.exclude(segments=None).select_for_update():
        if replacements := replace(response.text):
            _move(response, replacements, erase)


def _move(response: Response, replacements: Sequence[Replacement], erase: Callable[[str], str]) -> None:
    before = ranges(response.segments)
    places = moved(before, replacements)
    response.segments = _pairs(places)
    response.save(update_fields=["segments"])
    for rating in Rating.objects.filter(response=response).exclude(segment_scores=None, comments=[]):
        own = moved(ranges(rating.cut), replacements) if rating.cut else places
        rating.segment_scores = _left(rating.segment_scores, own)
        rating.cut = _pairs(own) if rating.cut else None
        rating.comments = _comments(rating.comments, replacements, erase)
        rating.save(update_fields=["segment_scores", "cut", "comments"])
    for label in Label.objects.filter(response=response).exclude(segment_scores=None):
        own = moved(ranges(label.cut), replacements) if label.cut else places
        label.segment_scores, label.segment_means = _left(label.segment_scores, own), _left(label.segment_means, own)
        label.cut = _pairs(own) if label.cut else None
        label.save(update_fields=["segment_scores", "segment_means", "cut"])
    for model in (ExpertRating, QualificationAnswer):
        for row in model.objects.filter(response=response).exclude(segment_scores=None):
            row.segment_scores = _left(row.segment_scores, places)
            row.save(update_fields=["segment_scores"])
    for score in response.model_scores.exclude(segment_scores=None):
        # A pass that was under way while a manager changed the segments has scored the former ones.
        is_of_these = len(score.segment_scores or ()) == len(places)
        score.segment_scores = _left(score.segment_scores, places) if is_of_these else None
        score.save(update_fields=["segment_scores"])
    key = str(response.pk)
    for adjudication in Adjudication.objects.filter(task=response.task_id, segments__has_key=key):
        adjudication.segments[key] = _left(adjudication.segments[key], places)
        adjudication.save(update_fields=["segments"])
    _change_drafts(response, is_one_gone=None in places)


def _pairs(places: Sequence[Range | None]) -> Rows:
    return [list(place) for place in places if place is not None]


def _left(rows: Rows | None, places: Sequence[Range | None]) -> Rows | None:
    """Returns the rows of the segments that are still there."""
    if rows is None:
        return None
    return [row for row, place in zip(rows, places, strict=True) if place is not None]


def _comments(comments: Sequence[Any], replacements: Sequence[Replacement], erase: Callable[[str], str]) -> Rows:
    places = moved([Range(start, end) for start, end, _text in comments], replacements)
    texts = [erase(text) for *_, text in comments]
    return [[*place, text] for place, text in zip(places, texts, strict=True) if place is not None]


def _change_drafts(response: Response, *, is_one_gone: bool) -> None:
    """Takes from drafts what would be about another segment: all answers if one is gone, and an own cut in any case."""
    number = response.public_id
    for draft in Draft.objects.filter(assignment__task=response.task_id):
        form = {name: value for name, value in draft.form.items() if not _is_wrong(name, number, is_one_gone)}
        if form != draft.form:
            draft.form = form
            draft.save(update_fields=["form"])


def _is_wrong(name: str, response: int, is_one_gone: bool) -> bool:
    of_segments = tuple(f"{kind}-{response}-" for kind in _OF_A_SEGMENT)
    return name == f"cut-{response}" or (is_one_gone and name.startswith(of_segments))
