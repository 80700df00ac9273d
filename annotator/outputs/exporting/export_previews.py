"""Says what an export would hold before anybody downloads it: its first rows, and about how many it has."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from django.db import transaction

from annotator.infrastructure.db.statements import Statement
from annotator.models import Project, User
from annotator.outputs.exporting.columns import Row
from annotator.outputs.exporting.export_rows import chosen_columns, for_reader, require_allowed, with_fields
from annotator.outputs.exporting.file_formats import encoded
from annotator.outputs.exporting.filters import EVERYTHING, STATES, Filters
from annotator.outputs.exporting.layouts import LAYOUTS
from annotator.reading.blindness import tasks_held_by
from annotator.reading.search.criteria import Criteria, matching, searching

SHOWN = 10
MEASURED = 100
"""Rows whose size is measured."""
COUNTED_TASKS = 1_000
"""Tasks up to which rows are counted one by one. Of a larger project this many, from all over it, are looked at."""
PLACES = 40


@dataclass(frozen=True)
class ExportPreview:
    """The first rows, and how many rows and bytes there are.

    `exact` is false where both are estimated, `exact_size` where the bytes are.
    """

    first: Sequence[Row]
    rows: int
    bytes: int
    exact: bool
    exact_size: bool


def preview(
    project: Project,
    *,
    layout: str,
    format: str,
    gzip: bool = False,
    filters: Filters = EVERYTHING,
    fields: Sequence[str] = (),
    by: User,
) -> ExportPreview:
    """Reads the first rows of an export and estimates its size. It is no export, so the audit gets no entry.

    Raises:
        UnknownExport, UnknownField, NoLabels, NoRubricVersion, ForManagers: As for `export`.
        TooBroad: It takes too long to find the tasks.
    """
    require_allowed(project, layout=layout, format=format, filters=filters, by=by)
    filters = for_reader(filters, project, by)
    columns = chosen_columns(project, layout, format, filters, fields) if fields or format == "csv" else {}
    tasks = project.tasks.count()
    first = filters
    # Without this, rows of a few tasks would be looked for among the rows of all.
    if filters.restrict_tasks() and tasks > COUNTED_TASKS:
        ids = _first_chosen(project, filters, by)
        first = replace(filters, state="", language="", source=None, among=ids)
    with transaction.atomic():
        # Under no name: rows that are not read to their end hold the connection until nothing refers to them.
        head = list(with_fields(islice(_rows(project, layout, first, by), MEASURED), fields))
    if first.among is not None and len(first.among) <= COUNTED_TASKS:
        rows, exact = LAYOUTS[layout].count(project, first), True
    elif len(head) < MEASURED and first.among is None:
        rows, exact = len(head), True
    else:
        sample = _sample(project, tasks)
        counted = LAYOUTS[layout].count(project, replace(filters, among=sample))
        exact = len(sample) == tasks
        rows = max(round(counted * tasks / max(len(sample), 1)), len(head))
    # Parquet takes a process to write; its size is much like that of gzipped lines, as a zip's is.
    packed = format in ("parquet", "zip")
    parts = encoded(head, columns, format="jsonl" if packed else format, gzip=gzip or packed)
    size = sum(map(len, parts))
    if len(head) < rows:
        size = round(size / max(len(head), 1) * rows)
    return ExportPreview(head[:SHOWN], rows, size, exact=exact, exact_size=exact and len(head) == rows and not packed)


def _rows(project: Project, layout: str, filters: Filters, by: User) -> Iterator[Row]:
    """Yields the rows of the first few tasks, then of the others: most layouts have a row for each, texts and all."""
    few = filters.among and filters.among[:MEASURED]
    yield from LAYOUTS[layout].rows(project, replace(filters, among=few), tasks_held_by(by))
    if filters.among and (others := filters.among[MEASURED:]):
        yield from LAYOUTS[layout].rows(project, replace(filters, among=others), tasks_held_by(by))


def _first_chosen(project: Project, filters: Filters, by: User) -> Sequence[int]:
    """Returns the ids of the tasks that the filters choose; one more than COUNTED_TASKS if there are more."""
    criteria = Criteria(state=filters.state, language=filters.language, source=filters.source)
    with searching():
        tasks = matching(project, criteria, reader=by).tasks.filter(state__in=STATES)
        return list(tasks.order_by("pk").values_list("pk", flat=True)[: COUNTED_TASKS + 1])


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
