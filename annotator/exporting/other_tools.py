"""The layouts that other annotation tools import: Label Studio's tasks with annotations, and Argilla's records.

Both name their questions by attribute and response, such as helpfulness_1; responses count from 1, as in `wide`.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson
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
from annotator.exporting.copied import Lines
from annotator.exporting.filters import Filters
from annotator.exporting.parts import without_line_ends
from annotator.models import Project, Response
from annotator.models.annotation import PREFERENCE_STATEMENTS

AGENT = "rewardloop"
"""Who suggests the labels in Argilla."""
CONVERSATION = "conversation"


def label_studio_rows(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Lines:
    """Reads a row for each task that has been rated: its texts as data, and what each annotator said as results.

    Stars count from 1, as the levels do on pages.
    """
    keys = project.attribute_keys()
    tasks = answered_tasks(rated_tasks(project, filters).without(unseen), Depth(ratings=True))
    return Lines(_label_studio_line(task, keys) for task in tasks)


def _label_studio_line(task: AnsweredTask, keys: Sequence[str]) -> bytes:
    # Put together from encoded parts, as most results of a task occur in others too.
    data = orjson.dumps(_texts(task) | {"task": task.name, "language": task.language})
    places = {answer.pk: place for place, answer in enumerate(task.responses, start=1)}
    annotations = b",".join(_annotation(rating, places, keys) for rating in task.ratings)
    return without_line_ends(b'{"data":%b,"annotations":[%b]}\n' % (data, annotations))


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


def _annotation(rating: RatedBy, places: Mapping[int, int], keys: Sequence[str]) -> bytes:
    """Makes an annotation from the ratings by one annotator of each response, which `places` counts from 1."""
    results = [_written("annotator", rating.annotator)]
    for place, scores in sorted((places[response], scores) for response, scores in rating.scores):
        results += [_stars(key, place, scores[key] + 1) for key in keys if key in scores]
    if rating.preference is not None:
        results.append(_preferred(rating.preference))
    if rating.justification:
        results.append(_written("justification", rating.justification))
    return b'{"result":[%b],"lead_time":%b}' % (b",".join(results), orjson.dumps(rating.active_seconds))


@lru_cache(maxsize=2_048)
def _stars(key: str, place: int, number: int) -> bytes:
    return _result(f"{key}_{place}", f"response_{place}", "rating", rating=number)


@lru_cache(maxsize=16)
def _preferred(preference: int) -> bytes:
    return _result("preference", CONVERSATION, "choices", choices=[PREFERENCE_STATEMENTS[preference]])


def _written(name: str, text: str) -> bytes:
    return _result(name, CONVERSATION, "textarea", text=[text])


def _result(name: str, of: str, kind: str, **value: Any) -> bytes:
    return orjson.dumps({"id": name, "from_name": name, "to_name": of, "type": kind, "value": value})


def _suggestions(task: AnsweredTask) -> Row:
    scores = {
        f"{key}_{number}": {"value": half_up(mean) + 1, "agent": AGENT}
        for number, answer in enumerate(task.responses, start=1)
        for key, mean in answer.means.items()
    }
    if task.preference is not None and len(task.responses) == 2:
        scores["preference"] = {"value": PREFERENCE_STATEMENTS[task.preference], "agent": AGENT}
    return scores
