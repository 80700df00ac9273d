"""A stored annotation as the form that its annotator filled."""

from annotator.models import NEITHER_VALID, Annotation


def filled(annotation: Annotation) -> dict[str, object]:
    """Initial values of the rating form. The preference is relative to the order its annotator saw."""
    values: dict[str, object] = {
        "justification": annotation.justification,
        "active_seconds": annotation.active_seconds,
        "preference": _as_shown(annotation),
    }
    for rating in annotation.ratings.all():
        values |= {f"{key}-{rating.response_id}": score for key, score in rating.scores.items()}
        values |= {f"checks-{key}-{rating.response_id}": rating.checks for key in rating.scores}
        values[f"confidence-{rating.response_id}"] = rating.confidence
        values[f"safe-{rating.response_id}"] = None if rating.safe is None else int(rating.safe)
        values[f"unsafe-{rating.response_id}"] = rating.unsafe_category
    return values


def _as_shown(annotation: Annotation) -> int | None:
    order, preference = annotation.assignment.response_order, annotation.preference
    if preference is None or preference == NEITHER_VALID or order == sorted(order):
        return preference
    return -preference
