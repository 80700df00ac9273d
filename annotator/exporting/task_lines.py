"""Reads tasks with what belongs to them, by walks through sorted ids instead of look-ups for each task.

Of each table PostgreSQL reads what belongs to a part of the tasks in the order of an index, and merges it by task.
Looking up everything task by task takes one and a half times as long.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from django.core.exceptions import EmptyResultSet
from django.db.models import QuerySet

from annotator.db.planning import by_merging_without_transaction
from annotator.exporting.parts import Select, copied_in_parts, copied_lines
from annotator.exporting.selections import Selection
from annotator.models import Task

AT_ONCE = 4_000
"""Tasks whose rows are read by one statement. Twice as many as elsewhere, as each takes milliseconds to plan."""

# A table that was joined without the ids of a part would be read as a whole.
_SELECT = """
WITH part AS MATERIALIZED ({exported}),
assignments AS MATERIALIZED (
    SELECT id, task_id, annotator_id, counts FROM annotator_assignment WHERE task_id = ANY(ARRAY(SELECT id FROM part))
),
annotations AS MATERIALIZED (
    SELECT s.task_id, s.annotator_id, s.counts, n.id, {annotations}
    FROM annotator_annotation n JOIN assignments s ON s.id = n.assignment_id
    WHERE n.assignment_id = ANY(ARRAY(SELECT id FROM assignments)) AND n.is_current
),
raters AS MATERIALIZED (
    SELECT user_id, to_json(name) AS name FROM annotator_pseudonym
    WHERE project_id = %s AND user_id = ANY(ARRAY(SELECT annotator_id FROM assignments))
),
chosen AS MATERIALIZED ({chosen})
SELECT {row} FROM annotator_task t
LEFT JOIN (
    SELECT r.task_id, {responses} FROM annotator_response r {labels}
    WHERE r.task_id = ANY(ARRAY(SELECT id FROM chosen)) GROUP BY r.task_id
) responses ON responses.task_id = t.id
{decisions}
{sets}
WHERE t.id = ANY(ARRAY(SELECT id FROM chosen)) {listed} ORDER BY t.id
"""
_DECISIONS = """
LEFT JOIN (
    SELECT * FROM annotator_consensus WHERE task_id = ANY(ARRAY(SELECT id FROM {tasks}))
) c ON c.task_id = t.id
LEFT JOIN (
    SELECT * FROM annotator_adjudication WHERE is_current AND task_id = ANY(ARRAY(SELECT id FROM {tasks}))
) a ON a.task_id = t.id
"""
_SET = "LEFT JOIN ({rows}) {name} ON {name}.task_id = t.id"
# So that the texts of other tasks are not read.
_MEETING = """
    SELECT t.id FROM annotator_task t
    {decisions}
    WHERE t.id = ANY(ARRAY(SELECT id FROM part)) AND {condition}
"""
_ANNOTATED = "SELECT DISTINCT task_id AS id FROM annotations"


@dataclass(frozen=True)
class Reading:
    """What is read of each task, in SQL.

    `row` is the one value of a task's row, made of its table `t`, its consensus `c` and current adjudication `a` (both
    null where there is none), the columns of `responses`, and those of `sets`. `responses` are columns made of all
    responses `r` of a task; `labels` joins something else to each of these. Each of the `sets`, by its name, selects a
    row for each `task_id`, with the column `listed`, from `annotations` and from `raters`, which have the pseudonym as
    JSON for each `user_id`; its values are those of its parameters. The annotations are the current ones, with the
    columns of `n` that `annotations` names, their `id`, and the `task_id`, `annotator_id` and `counts` of their
    assignments.
    """

    row: str
    responses: str
    annotations: str
    labels: str = ""
    sets: Mapping[str, Select] = field(default_factory=dict)


def task_lines(tasks: Selection, reading: Reading) -> Iterator[bytes]:
    """Yields what is read of each task as a line, in the order of the tasks' ids, a part of the project at a time."""

    def of_part(first: int, end: int) -> Select:
        return _select(tasks, tasks.exported.filter(pk__gte=first, pk__lt=end), reading)

    with suppress(EmptyResultSet):  # the query's own conditions exclude everything
        if tasks.filters.among is None:
            planned = by_merging_without_transaction
            yield from copied_in_parts(tasks.project, of_part, planned=planned, at_once=AT_ONCE)
        else:
            select = _select(tasks, tasks.exported, reading)
            with by_merging_without_transaction():
                yield from copied_lines(*select)


def _select(tasks: Selection, exported: QuerySet[Task], reading: Reading) -> Select:
    sql, values = exported.values("id").query.sql_with_params()
    meeting = _MEETING.format(decisions=_DECISIONS.format(tasks="part"), condition=tasks.condition)
    select = _SELECT.format(
        exported=sql,
        row=reading.row,
        responses=reading.responses,
        annotations=reading.annotations,
        labels=reading.labels,
        sets="\n".join(_SET.format(rows=rows, name=name) for name, (rows, _) in reading.sets.items()),
        decisions=_DECISIONS.format(tasks="chosen"),
        chosen=_ANNOTATED if tasks.listed_in else meeting,
        listed=f"AND {tasks.listed_in}.listed IS NOT NULL" if tasks.listed_in else "",
    )
    of_sets = [value for _, of_set in reading.sets.values() for value in of_set]
    return select, [*values, tasks.project.pk, *tasks.values, *of_sets]
