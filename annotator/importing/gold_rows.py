"""Gold tasks: rows that say how experts rate their responses. A gold task stays what it was at its first import."""

from collections.abc import Sequence
from typing import Any

from annotator.importing.field_checks import BadRow, level, only_known, required, shown, storable_text
from annotator.importing.rows import Expert, Placed
from annotator.models import ExpertRating, Gold


def gold_use(value: Any) -> str:
    """Where a gold task is used; empty for any other task."""
    if value in (None, ""):
        return ""
    if not isinstance(value, str) or value not in Gold.Use.values:
        raise BadRow(f"gold is {shown(value)}: it must be one of {', '.join(Gold.Use.values)}")
    return value


def expert_of(value: Any, name: str, attributes: Sequence[str]) -> Expert | None:
    """The object {scores, explanation} of one response, with a score for every attribute."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise BadRow(f"{name} is {shown(value)}: it must be an object with scores and an explanation")
    only_known(value, {"scores", "explanation"}, f"field of {name}")
    scores, explanation = required(value, "scores"), value.get("explanation") or ""
    if not isinstance(scores, dict):
        raise BadRow(f"{name}.scores is {shown(scores)}: it must be an object of attributes and scores")
    only_known(scores, set(attributes), f"attribute of {name}.scores")
    if missing := [key for key in attributes if key not in scores]:
        raise BadRow(f"{name}.scores lacks {', '.join(missing)}")
    checked = {key: level(scores[key], f"{name}.scores.{key}") for key in attributes}
    return Expert(checked, storable_text(explanation, f"{name}.explanation") if explanation else "")


def check_gold(use: str, experts: Sequence[Expert | None]) -> None:
    """A gold task has an expert's rating of every response, any other task of none."""
    if use and not all(experts):
        raise BadRow("gold needs an expert rating of every response: responses[].expert {scores, explanation}")
    if not use and any(experts):
        raise BadRow(f"a response has an expert rating: set gold to say what it is for ({', '.join(Gold.Use.values)})")


def write_experts(placed: Sequence[Placed]) -> list[tuple[int, str]]:
    """Makes new tasks gold; returns lines and errors of rows that contradict the gold that is there."""
    given = [each for each in placed if each.row.gold]
    _make([each for each in given if each.is_new])
    known = [each for each in given if not each.is_new]
    stored = {gold.task_id: gold for gold in _stored([each.task for each in known])}
    wrong = "the task already exists with another gold: change that in the admin, or give the row another id"
    return [(each.row.line, wrong) for each in known if not _same(stored.get(each.task), each)]


def _stored(tasks: Sequence[int]) -> list[Gold]:
    return list(Gold.objects.filter(task__in=tasks).prefetch_related("ratings__response")) if tasks else []


def _make(placed: Sequence[Placed]) -> None:
    golds = Gold.objects.bulk_create(Gold(task_id=each.task, use=each.row.gold) for each in placed)
    ExpertRating.objects.bulk_create(
        ExpertRating(gold=gold, response_id=response, scores=row.expert.scores, explanation=row.expert.explanation)
        for gold, each in zip(golds, placed, strict=True)
        for response, row in zip(each.responses, each.row.responses, strict=True)
        if row.expert
    )


def _same(gold: Gold | None, placed: Placed) -> bool:
    if gold is None or gold.use != placed.row.gold:
        return False
    stored = {rating.response.position: (rating.scores, rating.explanation) for rating in gold.ratings.all()}
    given = enumerate(row.expert for row in placed.row.responses)
    return stored == {position: (expert.scores, expert.explanation) for position, expert in given if expert}
