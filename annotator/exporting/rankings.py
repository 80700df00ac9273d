"""The layout of rankings: each ranked task with what each annotator and all of them together say."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db.models import QuerySet

from annotator.consensus.rankings import ranking_of
from annotator.exporting.answered_tasks import Depth, answered_tasks, ranked_tasks
from annotator.exporting.columns import BOOLEAN, MESSAGES, TEXT, TIME, Row, Type
from annotator.exporting.filters import Filters
from annotator.models import Annotation, Project


def ranking_rows(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Iterator[Row]:
    """Yields a row for each ranked task: conversation, responses, the combined ranking and each annotator's ranking.

    `pairs` holds the pairs on which the rankings agree, the better response first. `ranking` is the reviewer's if there
    is one, otherwise the order by wins minus losses in `pairs`; it is null if the task yields no labels. A time
    selects the tasks that were ranked in it, and their lists are complete.
    """
    if not _ranked(project).exists():
        return
    tasks = ranked_tasks(project, filters).without(unseen)
    for task in answered_tasks(tasks, Depth(rankings=True)):
        names = {answer.pk: answer.name for answer in task.responses}
        pairs = task.pairs
        yield {
            "task": task.name,
            "conversation": task.conversation,
            "responses": [{"id": answer.name, "text": answer.text} for answer in task.responses],
            "ranking": None if pairs is None else _named(ranking_of(pairs, list(names)), names),
            "pairs": [[names[better], names[worse]] for better, worse in pairs or ()],
            "rankings": [
                {
                    "annotator": one.annotator,
                    "ranking": _named(one.ranking, names),
                    "justification": one.justification,
                    "submitted_at": one.submitted_at,
                    "counts": one.counts,
                }
                for one in task.rankings
            ],
        }


def _named(ranking: Sequence[Sequence[int]], names: Mapping[int, str]) -> list[list[str]]:
    return [[names[response] for response in tier] for tier in ranking]


def ranking_columns(_project: Project) -> Mapping[str, Type]:
    responses = [{"id": TEXT, "text": TEXT}]
    by_people = {"annotator": TEXT, "ranking": [[TEXT]], "justification": TEXT, "submitted_at": TIME, "counts": BOOLEAN}
    head = {"task": TEXT, "conversation": MESSAGES, "responses": responses, "ranking": [[TEXT]], "pairs": [[TEXT]]}
    return {**head, "rankings": [by_people]}


def count_ranked(project: Project, filters: Filters) -> int:
    ranked = filters.of_tasks(_ranked(project), project, "assignment__task__")
    in_time = filters.of_time(ranked, "submitted_at")
    return int(in_time.values("assignment__task").distinct().count())


def _ranked(project: Project) -> QuerySet[Annotation]:
    return Annotation.objects.current().for_project(project.pk).filter(ranking__isnull=False)
