"""A stored annotation as the form that its annotator filled."""

from annotator.annotation import by_position
from annotator.models import Annotation


def filled(annotation: Annotation) -> dict[str, object]:
    """Initial values of the rating form. The preference is relative to the order its annotator saw."""
    values: dict[str, object] = {
        "justification": annotation.justification,
        "active_seconds": annotation.active_seconds,
        "preference": by_position(annotation.preference, annotation.assignment.response_order),
    }
    for rating in annotation.ratings.all():
        values |= {f"{key}-{rating.response_id}": score for key, score in rating.scores.items()}
        values |= {f"checks-{key}-{rating.response_id}": rating.checks for key in rating.scores}
        values[f"confidence-{rating.response_id}"] = rating.confidence
        values[f"safe-{rating.response_id}"] = None if rating.safe is None else int(rating.safe)
        values[f"unsafe-{rating.response_id}"] = rating.unsafe_category
    return values
