"""Checks that every segment of a response is rated by every aspect, on its scale, and that comments lie in the text."""

from collections.abc import Iterator, Mapping, Sequence

from django.utils.translation import gettext as _

from annotator.annotation.content import ResponseRating
from annotator.db.storable_text import fault_in, shown_name
from annotator.limits import LONGEST_NOTE, MOST_COMMENTS
from annotator.models import Attribute
from annotator.segmenting import Range

MOST_NAMED = 5
"""Mistakes of one kind that an answer lists: it need not be as long as what was sent."""


def segment_errors(rating: ResponseRating, aspects: Sequence[Attribute], cut: Sequence[Range]) -> list[str]:
    """Returns what is wrong with the scores and comments of one response, whose segments are `cut`."""
    if not aspects:
        asks = _("this project rates whole responses: leave out the segments")
        return [asks] if rating.segments or rating.cut or rating.comments else []
    errors = [*_score_errors(rating.segments, aspects, len(cut)), *_comment_errors(rating, cut)]
    return errors[:MOST_NAMED]


def _score_errors(segments: Sequence[Mapping[str, int | None]], aspects: Sequence[Attribute], count: int) -> list[str]:
    if len(segments) != count:
        text = _("it has %(count)s segments, and %(rated)s are rated: rate each by its index from 0")
        return [text % {"count": count, "rated": len(segments)}]
    highest = {aspect.key: len(aspect.levels) - 1 for aspect in aspects}
    names = {aspect.key: aspect.shown_name for aspect in aspects}
    errors: list[str] = []
    for number, scores in enumerate(segments, 1):
        if scores.keys() != highest.keys():
            errors += _unlike(scores, names, number)
        errors += [
            _(
                "segment %(number)s, %(key)s is %(score)r: it must be a whole number from 0 to %(highest)s, or null "
                "where it does not apply"
            )
            % {"number": number, "key": key, "score": score, "highest": highest[key]}
            for key, score in scores.items()
            # Not isinstance: True and False are ints as well.
            if key in highest and score is not None and (type(score) is not int or not 0 <= score <= highest[key])
        ]
        if len(errors) >= MOST_NAMED:
            break
    return errors


def _unlike(scores: Mapping[str, int | None], names: Mapping[str, str], number: int) -> Iterator[str]:
    for key in names.keys() - scores.keys():
        yield _("segment %(number)s: %(question)s has no answer") % {"number": number, "question": names[key]}
    for key in scores.keys() - names.keys():
        text = _("segment %(number)s: %(key)s is not an attribute of segments in this project")
        yield text % {"number": number, "key": shown_name(key)}


def _comment_errors(rating: ResponseRating, cut: Sequence[Range]) -> list[str]:
    if len(rating.comments) > MOST_COMMENTS:
        return [_("it has %(count)s comments, and at most %(most)s are stored") % _numbers(rating)]
    length = cut[-1].end if cut else 0
    errors = []
    for number, (start, end, text) in enumerate(rating.comments, 1):
        if not 0 <= start < end <= length:
            place = _("comment %(number)s is on characters %(start)s to %(end)s of a text that has %(length)s")
            errors.append(place % {"number": number, "start": start, "end": end, "length": length})
        if not text.strip() or len(text) > LONGEST_NOTE:
            words = _("comment %(number)s is empty, or has more than %(most)s characters")
            errors.append(words % {"number": number, "most": LONGEST_NOTE})
        elif fault := fault_in(text):
            holds = _("comment %(number)s holds %(what)s, which cannot be stored")
            errors.append(holds % {"number": number, "what": _(fault.what)})
    return errors


def _numbers(rating: ResponseRating) -> dict[str, int]:
    return {"count": len(rating.comments), "most": MOST_COMMENTS}
