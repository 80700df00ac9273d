"""Reads and writes gold tasks, whose rows say how experts rate the responses. A later import never changes them."""

from collections.abc import Sequence
from typing import Any

from annotator.importing.field_checks import BadRow, level, only_known, required, shown, storable_text
from annotator.importing.rows import Expert, Placed, Rules, SegmentLabel
from annotator.models import ExpertRating, Gold


def gold_use(value: Any) -> str:
    """Returns where a gold task is used, or an empty text for any other task. Raises BadRow."""
    if value in (None, ""):
        return ""
    if not isinstance(value, str) or value not in Gold.Use.values:
        raise BadRow(f"gold is {shown(value)}: it must be one of {', '.join(Gold.Use.values)}")
    return value


def expert_of(value: Any, name: str, rules: Rules, *, segments: int) -> Expert | None:
    """Reads the object {scores, explanation, segments} of one response with so many given segments.

    It must score every attribute, and every segment by every aspect of a project that rates segments. Raises BadRow.
    """
    attributes = rules.attributes
    if value is None:
        return None
    if not isinstance(value, dict):
        raise BadRow(f"{name} is {shown(value)}: it must be an object with scores and an explanation")
    only_known(value, {"scores", "explanation", "segments"}, f"field of {name}")
    scores = required(value, "scores") if attributes else value.get("scores") or {}
    explanation = value.get("explanation") or ""
    if not isinstance(scores, dict):
        raise BadRow(f"{name}.scores is {shown(scores)}: it must be an object of attributes and scores")
    only_known(scores, set(attributes), f"attribute of {name}.scores")
    if missing := [key for key in attributes if key not in scores]:
        raise BadRow(f"{name}.scores lacks {', '.join(missing)}")
    checked = {key: level(scores[key], f"{name}.scores.{key}", levels) for key, levels in attributes.items()}
    reasons = storable_text(explanation, f"{name}.explanation") if explanation else ""
    return Expert(checked, reasons, _segments(value.get("segments"), f"{name}.segments", rules, segments))


def _segments(value: Any, name: str, rules: Rules, count: int) -> SegmentLabel | None:
    if not rules.aspects:
        return None
    if not isinstance(value, list) or not value or len(value) != count:
        raise BadRow(f"{name} must be a list of scores by aspect for each of the response's segments, which name them")
    aspects = tuple(rules.aspects)
    for number, scores in enumerate(value):
        if not isinstance(scores, dict) or scores.keys() != set(aspects):
            raise BadRow(f"{name}[{number}] must be an object with {', '.join(aspects)}, null where one does not apply")
    rows = tuple(
        tuple(
            None if scores[key] is None else level(scores[key], f"{name}[{number}].{key}", rules.aspects[key])
            for key in aspects
        )
        for number, scores in enumerate(value)
    )
    return SegmentLabel(aspects, rows)


def check_gold(use: str, experts: Sequence[Expert | None]) -> None:
    """Raises BadRow unless a gold task has an expert's rating of every response, and any other task has none."""
    if use and not all(experts):
        raise BadRow("gold needs an expert rating of every response: responses[].expert {scores, explanation}")
    if not use and any(experts):
        raise BadRow(f"a response has an expert rating: set gold to say what it is for ({', '.join(Gold.Use.values)})")


def write_experts(placed: Sequence[Placed]) -> list[tuple[int, str]]:
    """Makes new tasks gold; returns the lines and errors of rows that contradict the stored gold."""
    gold_rows = [placed_row for placed_row in placed if placed_row.row.gold]
    _make([placed_row for placed_row in gold_rows if placed_row.is_new])
    known = [placed_row for placed_row in gold_rows if not placed_row.is_new]
    golds = Gold.objects.filter(task__in=[placed_row.task for placed_row in known])
    # Most imports have no gold tasks, and then need no query.
    stored = {gold.task_id: gold for gold in golds.prefetch_related("ratings__response")} if known else {}
    wrong = "the task already exists with another gold: change that in the admin, or give the row another id"
    return [(placed_row.row.line, wrong) for placed_row in known if not _same(stored.get(placed_row.task), placed_row)]


def _make(placed: Sequence[Placed]) -> None:
    golds = Gold.objects.bulk_create(Gold(task_id=placed_row.task, use=placed_row.row.gold) for placed_row in placed)
    ExpertRating.objects.bulk_create(
        ExpertRating(
            gold=gold,
            response_id=response,
            scores=row.expert.scores,
            explanation=row.expert.explanation,
            aspects=list(row.expert.segments.aspects) if row.expert.segments else [],
            segment_scores=[list(one) for one in row.expert.segments.scores] if row.expert.segments else None,
        )
        for gold, placed_row in zip(golds, placed, strict=True)
        for response, row in zip(placed_row.responses, placed_row.row.responses, strict=True)
        if row.expert
    )


def _same(gold: Gold | None, placed: Placed) -> bool:
    if gold is None or gold.use != placed.row.gold:
        return False
    # Compared by position: the ids of the responses are read only for rows that have ratings.
    stored = {rating.response.position: (rating.scores, rating.explanation) for rating in gold.ratings.all()}
    experts = enumerate(row.expert for row in placed.row.responses)
    return stored == {position: (expert.scores, expert.explanation) for position, expert in experts if expert}
