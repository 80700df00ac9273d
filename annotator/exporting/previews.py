"""Says what an export would hold before anybody downloads it: its first rows, and about how many it has."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from django.db import transaction

from annotator.db.statements import Statement
from annotator.exporting.rows import LAYOUTS, Row, encoded, require_known
from annotator.models import Annotation, Label, Project, Rating, User
from annotator.review.blindness import tasks_held_by

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


def preview(project: Project, *, layout: str, format: str, since: datetime | None, by: User) -> Preview:
    """Reads the first rows of an export and estimates its size. It is no export, so the audit gets no entry.

    Raises:
        UnknownExport: There is no such layout or format.
    """
    require_known(layout=layout, format=format)
    with transaction.atomic():
        head = list(islice(LAYOUTS[layout](project, since, tasks_held_by(by)), MEASURED))
    if len(head) < MEASURED:
        return Preview(head[:SHOWN], len(head), _size(head, project, layout, format), exact=True)
    tasks = project.tasks.count()
    sample = _sample(project, tasks)
    counted = COUNTS[layout](sample, since)
    exact = len(sample) == tasks
    rows = max(round(counted * tasks / max(len(sample), 1)), len(head))
    return Preview(head[:SHOWN], rows, round(_size(head, project, layout, format) / len(head) * rows), exact=exact)


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


def _labels(tasks: Sequence[int], since: datetime | None) -> int:
    labels = Label.objects.in_force().filter(response__task__in=tasks)
    return (labels.filter(made_at__gte=since) if since else labels).count()


def _ratings(tasks: Sequence[int], since: datetime | None) -> Any:
    current = Rating.objects.filter(annotation__is_current=True, annotation__assignment__task__in=tasks)
    ratings = current.filter(response__task__state__in=["open", "complete"])
    return ratings.filter(annotation__submitted_at__gte=since) if since else ratings


def _rated(tasks: Sequence[int], since: datetime | None) -> int:
    counting = _ratings(tasks, since).filter(annotation__assignment__counts=True)
    return int(counting.values("response").distinct().count())


def _annotations(tasks: Sequence[int], since: datetime | None) -> int:
    return int(_ratings(tasks, since).count())


def _ranked(tasks: Sequence[int], since: datetime | None) -> int:
    ranked = Annotation.objects.current().filter(assignment__task__in=tasks, ranking__isnull=False)
    ranked = ranked.filter(assignment__task__state__in=["open", "complete"])
    ranked = ranked.filter(submitted_at__gte=since) if since else ranked
    return ranked.values("assignment__task").distinct().count()


COUNTS: dict[str, Callable[[Sequence[int], datetime | None], int]] = {
    "helpsteer2": _labels,
    "disagreements": _rated,
    "annotations": _annotations,
    "rankings": _ranked,
}
