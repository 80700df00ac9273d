"""The layouts that other annotation tools import: Label Studio's tasks with annotations, and Argilla's records.

Both name their questions by attribute and response, such as helpfulness_1; responses count from 1, as in `wide`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db.models import Max, QuerySet

from annotator.consensus.rules import half_up
from annotator.exporting.answered_tasks import (
    COUNTED,
    AnsweredTask,
    Depth,
    RatedBy,
    answered_tasks,
    compared_tasks,
    rated_tasks,
)
from annotator.exporting.columns import INTEGER, MESSAGES, NUMBER, TEXT, Row, Type
from annotator.exporting.filters import Filters
from annotator.models import Project, Response
from annotator.models.annotation import PREFERENCE_STATEMENTS

AGENT = "rewardloop"
"""Who suggests the labels in Argilla."""
CONVERSATION = "conversation"


def label_studio_rows(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Iterator[Row]:
    """Yields a row for each task that has been rated: its texts as data, and what each annotator said as results.

    Stars count from 1, as the levels do on pages.
    """
    keys = project.attribute_keys()
    for task in answered_tasks(rated_tasks(project, filters).without(unseen), Depth(ratings=True)):
        yield {
            "data": _texts(task) | {"task": task.name, "language": task.language},
            "annotations": [_annotation(rating, keys) for rating in task.ratings],
        }


def label_studio_columns(project: Project) -> Mapping[str, Type]:
    value: Type = {"rating": INTEGER, "choices": [TEXT], "text": [TEXT]}
    result: Type = {**dict.fromkeys(("id", "from_name", "to_name", "type"), TEXT), "value": value}
    data: Type = {**_text_columns(project), "task": TEXT, "language": TEXT}
    return {"data": data, "annotations": [{"result": [result], "lead_time": NUMBER}]}


def count_rated_tasks(project: Project, filters: Filters) -> int:
    return sum(1 for _ in answered_tasks(rated_tasks(project, filters), COUNTED))


def argilla_rows(project: Project, filters: Filters, _unseen: QuerySet[Any]) -> Iterator[Row]:
    """Yields a record for each task with a label or a preference, which become suggestions. Scores count from 1."""
    for task in answered_tasks(compared_tasks(project, filters), Depth(labels=True)):
        if suggestions := _suggestions(task):
            yield {
                "id": task.name,
                "fields": _texts(task),
                "metadata": {"language": task.language},
                "suggestions": suggestions,
            }


def argilla_columns(project: Project) -> Mapping[str, Type]:
    questions = [f"{key}_{number}" for number in _numbers(project) for key in project.attribute_keys()]
    suggestions: Type = {
        **{question: {"value": INTEGER, "agent": TEXT} for question in questions},
        "preference": {"value": TEXT, "agent": TEXT},
    }
    return {"id": TEXT, "fields": _text_columns(project), "metadata": {"language": TEXT}, "suggestions": suggestions}


def count_suggested(project: Project, filters: Filters) -> int:
    tasks = answered_tasks(compared_tasks(project, filters), Depth(texts=False, labels=True))
    return sum(1 for task in tasks if _suggestions(task))


def _texts(task: AnsweredTask) -> Row:
    responses = {f"response_{number}": answer.text for number, answer in enumerate(task.responses, start=1)}
    return {CONVERSATION: task.conversation, **responses}


def _text_columns(project: Project) -> dict[str, Type]:
    return {CONVERSATION: MESSAGES, **{f"response_{number}": TEXT for number in _numbers(project)}}


def _numbers(project: Project) -> range:
    last = Response.objects.filter(task__project=project).aggregate(last=Max("position"))["last"]
    return range(1, (last or 0) + 2)


def _annotation(rating: RatedBy, keys: Sequence[str]) -> Row:
    """Makes an annotation from the ratings of each response by one annotator."""
    result = [_result("annotator", CONVERSATION, "textarea", text=[rating.annotator])]
    for position, scores in rating.scores:
        result += [
            _result(f"{key}_{position + 1}", f"response_{position + 1}", "rating", rating=scores[key] + 1)
            for key in keys
            if key in scores
        ]
    if rating.preference is not None:
        statement = PREFERENCE_STATEMENTS[rating.preference]
        result.append(_result("preference", CONVERSATION, "choices", choices=[statement]))
    if rating.justification:
        result.append(_result("justification", CONVERSATION, "textarea", text=[rating.justification]))
    return {"result": result, "lead_time": rating.active_seconds}


def _result(name: str, of: str, kind: str, **value: Any) -> Row:
    return {"id": name, "from_name": name, "to_name": of, "type": kind, "value": value}


def _suggestions(task: AnsweredTask) -> Row:
    scores = {
        f"{key}_{number}": {"value": half_up(mean) + 1, "agent": AGENT}
        for number, answer in enumerate(task.responses, start=1)
        for key, mean in answer.means.items()
    }
    if task.preference is not None and len(task.responses) == 2:
        scores["preference"] = {"value": PREFERENCE_STATEMENTS[task.preference], "agent": AGENT}
    return scores
