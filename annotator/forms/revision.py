"""Turns a stored annotation back into the form that its annotator filled."""

from collections.abc import Sequence

from annotator.annotation import by_position
from annotator.forms.ranking import filled_ranks
from annotator.forms.segment_cells import filled_segments
from annotator.models import Annotation, Rating
from annotator.models.public_ids import response_number
from annotator.segmenting import ranges


def filled(annotation: Annotation) -> dict[str, object]:
    """Returns initial values of the rating form. The preference is relative to the order that its annotator saw."""
    values: dict[str, object] = {
        "justification": annotation.justification,
        "domain": annotation.domain,
        "language": annotation.language,
        "active_seconds": annotation.active_seconds,
        "preference": by_position(annotation.preference, annotation.assignment.response_order),
    }
    values |= filled_ranks(annotation.ranking)
    for rating in annotation.ratings.all():
        response = response_number(rating.response_id)
        values |= {f"{key}-{response}": score for key, score in rating.scores.items()}
        values |= {f"checks-{key}-{response}": rating.checks for key in rating.scores}
        values[f"confidence-{response}"] = rating.confidence
        values[f"safe-{response}"] = None if rating.safe is None else int(rating.safe)
        values[f"unsafe-{response}"] = rating.unsafe_category
        values[f"written-feedback-{response}"] = rating.feedback
        values[f"written-edit-{response}"] = rating.edit
        values[f"written-summary-{response}"] = rating.edit_summary
        if rating.segment_scores is not None:
            values |= _segments(rating, annotation.aspects)
    return values


def _segments(rating: Rating, aspects: Sequence[str]) -> dict[str, str]:
    response = rating.response
    return filled_segments(
        response.public_id,
        aspects,
        rating.segment_scores or (),
        cut=ranges(rating.cut or response.segments),
        own=bool(rating.cut),
        comments=rating.comments,
        text=response.text,
    )
