"""The layout of rankings: each ranked task with what each annotator and all of them together say."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from django.db.models import F, Prefetch, QuerySet

from annotator.consensus.rankings import Pair, pairs_of, ranking_of
from annotator.exporting.columns import (
    BOOLEAN,
    CHUNK,
    MESSAGES,
    TEXT,
    TIME,
    Row,
    Type,
    named_tiers,
    response_name,
)
from annotator.exporting.filters import Filters
from annotator.models import Adjudication, Annotation, Consensus, Project, Task
from annotator.projects.pseudonyms import Pseudonyms

TASKS = 100
"""Ranked tasks that are read at a time, with all their texts."""


def ranking_rows(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Iterator[Row]:
    """Yields a row for each ranked task: conversation, responses, the combined ranking and each annotator's ranking.

    `pairs` holds the pairs on which the rankings agree, the better response first. `ranking` is the reviewer's if there
    is one, otherwise the order by wins minus losses in `pairs`; it is null if the task yields no labels. A time
    selects the tasks that were ranked in it, and their lists are complete.
    """
    current = Annotation.objects.current().for_project(project.pk).filter(ranking__isnull=False)
    ranked = filters.of_tasks(current, project, "assignment__task__").exclude(assignment__task__in=unseen)
    if filters.ask_for_a_time():
        news = filters.of_time(ranked, "submitted_at")
        ranked = ranked.filter(assignment__task__in=news.values("assignment__task"))
    rows = ranked.order_by("assignment__task", "submitted_at", "pk").values(
        "ranking",
        "justification",
        "submitted_at",
        task=F("assignment__task"),
        annotator=F("assignment__annotator"),
        counts=F("assignment__counts"),
    )
    pseudonyms = Pseudonyms(project.pk)
    by_task = groupby(rows.iterator(chunk_size=CHUNK), key=itemgetter("task"))
    # A part at a time: prefetching the responses needs a list of tasks, and the list of all would not fit in memory.
    tasks = ((task, list(group)) for task, group in by_task)
    while ranked_annotations := dict(islice(tasks, TASKS)):
        for task in _ranked_tasks(ranked_annotations):
            responses = list(task.responses.all())
            names = {response.pk: response_name(response.external_id, response.position) for response in responses}
            pairs = _pairs_in_force(task)
            yield {
                "task": task.external_id,
                "conversation": task.conversation,
                "responses": [{"id": names[response.pk], "text": response.text} for response in responses],
                "ranking": None if pairs is None else named_tiers(ranking_of(pairs, list(names)), names),
                "pairs": [[names[better], names[worse]] for better, worse in pairs or ()],
                "rankings": [
                    {
                        "annotator": pseudonyms[annotation["annotator"]],
                        "ranking": named_tiers(annotation["ranking"], names),
                        "justification": annotation["justification"],
                        "submitted_at": annotation["submitted_at"],
                        "counts": annotation["counts"],
                    }
                    for annotation in ranked_annotations[task.pk]
                ],
            }


def _ranked_tasks(chosen: Iterable[int]) -> QuerySet[Task]:
    settled = Adjudication.objects.filter(is_current=True)
    tasks = Task.objects.filter(pk__in=list(chosen)).order_by("pk").select_related("consensus")
    return tasks.prefetch_related("responses", Prefetch("adjudications", settled, to_attr="settled"))


def _pairs_in_force(task: Any) -> Sequence[Pair] | None:
    """Returns the reviewer's pairs, else those of the consensus; None for a task that is dropped or not settled yet."""
    if task.settled and task.settled[0].ranking:
        return pairs_of(task.settled[0].ranking)
    # A task that is not settled has no consensus, and asking for it raises an AttributeError.
    consensus: Consensus | None = getattr(task, "consensus", None)
    return consensus.pairs if consensus and not consensus.dropped_because else None


def ranking_columns(_project: Project) -> Mapping[str, Type]:
    responses = [{"id": TEXT, "text": TEXT}]
    by_people = {"annotator": TEXT, "ranking": [[TEXT]], "justification": TEXT, "submitted_at": TIME, "counts": BOOLEAN}
    head = {"task": TEXT, "conversation": MESSAGES, "responses": responses, "ranking": [[TEXT]], "pairs": [[TEXT]]}
    return {**head, "rankings": [by_people]}


def count_ranked(project: Project, filters: Filters) -> int:
    ranked = filters.of_tasks(Annotation.objects.current(), project, "assignment__task__").exclude(ranking=None)
    in_time = filters.of_time(ranked.filter(assignment__task__project=project), "submitted_at")
    return int(in_time.values("assignment__task").distinct().count())
