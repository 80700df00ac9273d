"""The layout that Argilla imports: records with suggestions. Its questions are named as those for Label Studio."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.db.models import QuerySet

from annotator.consensus.rules import half_up
from annotator.exporting.answered_tasks import AnsweredTask, Depth, answered_tasks
from annotator.exporting.columns import INTEGER, TEXT, Row, Type
from annotator.exporting.filters import Filters
from annotator.exporting.label_studio import CONVERSATION, numbers, text_columns
from annotator.exporting.selections import compared_tasks
from annotator.models import Project
from annotator.models.annotation import PREFERENCE_STATEMENTS

AGENT = "rewardloop"
"""Who suggests the labels."""


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


def argilla_columns(project: Project, filters: Filters) -> Mapping[str, Type]:
    questions = [f"{key}_{number}" for number in numbers(project) for key in filters.keys(project)]
    suggestions: Type = {
        **{question: {"value": INTEGER, "agent": TEXT} for question in questions},
        "preference": {"value": TEXT, "agent": TEXT},
    }
    return {"id": TEXT, "fields": text_columns(project), "metadata": {"language": TEXT}, "suggestions": suggestions}


def count_suggested(project: Project, filters: Filters) -> int:
    tasks = answered_tasks(compared_tasks(project, filters), Depth(texts=False, labels=True))
    return sum(1 for task in tasks if _suggestions(task))


def _texts(task: AnsweredTask) -> Row:
    responses = {f"response_{number}": answer.text for number, answer in enumerate(task.responses, start=1)}
    return {CONVERSATION: task.conversation, **responses}


def _suggestions(task: AnsweredTask) -> Row:
    scores = {
        f"{key}_{number}": {"value": half_up(mean) + 1, "agent": AGENT}
        for number, answer in enumerate(task.responses, start=1)
        for key, mean in answer.means.items()
    }
    if task.preference is not None and len(task.responses) == 2:
        scores["preference"] = {"value": PREFERENCE_STATEMENTS[task.preference], "agent": AGENT}
    return scores
