"""Says what an export would hold before anybody downloads it: its first rows, and about how many it has."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from django.db import transaction

from annotator.db.statements import Statement
from annotator.exporting.filters import EVERYTHING, STATES, Filters
from annotator.exporting.rows import LAYOUTS, Row, encoded, require_known
from annotator.models import Annotation, Label, Project, Rating, User
from annotator.review.blindness import tasks_held_by
from annotator.search.criteria import Criteria, matching, searching

SHOWN = 10
MEASURED = 100
"""Rows whose size is measured."""
COUNTED_TASKS = 1_000
"""Tasks up to which rows are counted one by one. Of a larger project this many, from all over it, are looked at."""
PLACES = 40


@dataclass(frozen=True)
class Preview:
    """The first rows, and how many rows and bytes there are. `exact` is false where these are estimated."""

    first: Sequence[Row]
    rows: int
    bytes: int
    exact: bool


def preview(project: Project, *, layout: str, format: str, filters: Filters = EVERYTHING, by: User) -> Preview:
    """Reads the first rows of an export and estimates its size. It is no export, so the audit gets no entry.

    Raises:
        UnknownExport: There is no such layout or format.
        TooBroad: It takes too long to find the tasks.
    """
    require_known(layout=layout, format=format)
    tasks = project.tasks.count()
    # Without this, rows of a few tasks would be looked for among the rows of all.
    if filters.restrict_tasks() and tasks > COUNTED_TASKS:
        filters = replace(filters, among=_first_chosen(project, filters, by))
    with transaction.atomic():
        head = list(islice(LAYOUTS[layout](project, filters, tasks_held_by(by)), MEASURED))
    if filters.among is not None and len(filters.among) <= COUNTED_TASKS:
        rows, exact = COUNTS[layout](project, filters), True
    elif len(head) < MEASURED and filters.among is None:
        rows, exact = len(head), True
    else:
        sample = _sample(project, tasks)
        counted = COUNTS[layout](project, replace(filters, among=sample))
        exact = len(sample) == tasks
        rows = max(round(counted * tasks / max(len(sample), 1)), len(head))
    size = _size(head, project, layout, format)
    if len(head) < rows:
        size = round(size / max(len(head), 1) * rows)
    return Preview(head[:SHOWN], rows, size, exact=exact)


def _first_chosen(project: Project, filters: Filters, by: User) -> Sequence[int]:
    """Returns the ids of the tasks that the filters choose; one more than COUNTED_TASKS if there are more."""
    states = [filters.state] if filters.state else list(STATES)
    ids: list[int] = []
    for state in states:
        criteria = Criteria(state=state, language=filters.language, source=filters.source)
        with searching():
            tasks = matching(project, criteria, reader=by).tasks
            ids += tasks.order_by("pk").values_list("pk", flat=True)[: COUNTED_TASKS + 1 - len(ids)]
    return ids


def _size(rows: Sequence[Row], project: Project, layout: str, format: str) -> int:
    return sum(len(part) for part in encoded(iter(rows), project, layout=layout, format=format))


_ENDS = Statement("SELECT min(id), max(id) FROM annotator_task WHERE project_id = %(project)s", prepared=False)
_AFTER = Statement(
    """
    SELECT DISTINCT t.id FROM unnest(%(places)s::bigint[]) AS p (place)
    CROSS JOIN LATERAL (
        SELECT id FROM annotator_task WHERE project_id = %(project)s AND id >= p.place ORDER BY id LIMIT %(each)s
    ) t
    """,
    prepared=False,
)


def _sample(project: Project, tasks: int) -> list[int]:
    """Returns all tasks of a small project, and runs of tasks from random places of a large one."""
    if tasks <= COUNTED_TASKS:
        return list(project.tasks.values_list("pk", flat=True))
    row = _ENDS.row(project=project.pk)
    assert row
    # Always the same places, so that the estimate does not change from one look to the next.
    chance = random.Random(project.pk)
    places = [chance.randint(row[0], row[1]) for _ in range(PLACES)]
    return [task for (task,) in _AFTER.rows(places=places, project=project.pk, each=COUNTED_TASKS // PLACES)]


def _labels(project: Project, filters: Filters) -> int:
    labels = filters.of_time(Label.objects.in_force_while_in_use(), "made_at")
    return int(filters.of_tasks(labels, project, "response__task__").count())


def _ratings(project: Project, filters: Filters) -> Any:
    current = filters.of_tasks(Rating.objects.filter(annotation__is_current=True), project, "response__task__")
    return filters.of_time(current, "annotation__submitted_at")


def _rated(project: Project, filters: Filters) -> int:
    counting = _ratings(project, filters).filter(annotation__assignment__counts=True)
    return int(counting.values("response").distinct().count())


def _annotations(project: Project, filters: Filters) -> int:
    return int(_ratings(project, filters).count())


def _ranked(project: Project, filters: Filters) -> int:
    ranked = filters.of_tasks(Annotation.objects.current(), project, "assignment__task__").exclude(ranking=None)
    return int(filters.of_time(ranked, "submitted_at").values("assignment__task").distinct().count())


COUNTS: dict[str, Callable[[Project, Filters], int]] = {
    "helpsteer2": _labels,
    "disagreements": _rated,
    "annotations": _annotations,
    "rankings": _ranked,
}
"""Counts the rows of a layout; `among` of the filters keeps it to few tasks."""
