"""Which tasks an export reads: those of its filters of which something has been said, in time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import QuerySet

from annotator.models import Project, Task
from annotator.models.in_force import COMPARED_AT, COMPARED_IN_FORCE, LABEL_IN_FORCE
from annotator.outputs.exporting.filters import Filters


@dataclass(frozen=True)
class RowSelection:
    """Tasks of an export, and what is asked of them to be read.

    Either they meet a condition, in SQL with its values, on a task `t`, its consensus `c` and its current adjudication
    `a`, or they are `listed_in` a set of the Reading.
    """

    project: Project
    filters: Filters
    exported: QuerySet[Task]
    condition: str = ""
    values: Sequence[Any] = ()
    listed_in: str = ""

    def without(self, unseen: QuerySet[Any]) -> "RowSelection":
        return replace(self, exported=self.exported.exclude(pk__in=unseen))


def preferred_tasks(project: Project, filters: Filters) -> RowSelection:
    """Selects the tasks of the export that have a preference or a ranking in force, by when it was made."""
    condition, values = _are_compared(filters)
    return RowSelection(project, filters, _exported(project, filters), condition, values)


def preferred_or_kept_tasks(project: Project, filters: Filters) -> RowSelection:
    """Selects the tasks of `preferred_tasks` and those that came with what people said in HelpSteer3's fields."""
    preferred = preferred_tasks(project, filters)
    return (
        preferred if filters.ask_for_a_time() else replace(preferred, condition=f"({preferred.condition} OR {_KEPT})")
    )


_KEPT = """t.metadata ? 'overall_preference' OR EXISTS (
    SELECT FROM annotator_response r WHERE r.task_id = t.id AND r.metadata ? 'feedback' OFFSET 0)"""


def compared_tasks(project: Project, filters: Filters) -> RowSelection:
    """Selects the tasks of the export whose responses may be told apart, by a preference, a ranking or labels."""
    compared, values = _are_compared(filters)
    within, times = in_time("l.made_at", filters)
    # OFFSET 0 has PostgreSQL look for the labels of this task: it would read those of all tasks for every part.
    labelled = f"""EXISTS (SELECT FROM annotator_response r WHERE r.task_id = t.id
        AND EXISTS (SELECT FROM ({LABEL_IN_FORCE}) l WHERE true{within} OFFSET 0) OFFSET 0)"""
    condition = f"({compared} OR {labelled})"
    return RowSelection(project, filters, _exported(project, filters), condition, [*values, *times])


def tasks_listed_in(name: str, project: Project, filters: Filters) -> RowSelection:
    """Selects the tasks of the export that a Reading's set of this name lists."""
    return RowSelection(project, filters, _exported(project, filters), listed_in=name)


def _exported(project: Project, filters: Filters) -> QuerySet[Task]:
    tasks: QuerySet[Task] = filters.of_tasks(Task.objects.filter(project=project), project)
    return tasks


def _are_compared(filters: Filters) -> tuple[str, list[Any]]:
    within, times = in_time(COMPARED_AT, filters)
    return f"({COMPARED_IN_FORCE}{within})", times


def in_time(column: str, filters: Filters) -> tuple[str, list[Any]]:
    """Returns a condition on a column of times, with AND before it, and its values."""
    conditions = [(f" AND {column} >= %s", filters.since), (f" AND {column} < %s", filters.until)]
    asked = [(condition, moment) for condition, moment in conditions if moment]
    return "".join(condition for condition, _ in asked), [moment for _, moment in asked]
