"""Lists a project's quarantined tasks, with who set each one aside, why and when, and what is marked in its texts."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from annotator.models import PiiKind, PiiSpan, Project, Report, Skip, SkipReason, Task, User
from annotator.reading.blindness import tasks_held_by
from annotator.reading.search.listing import with_beginnings

PAGE = 25


@dataclass(frozen=True)
class SetAsideMark:
    """A report, or a skip for personal information."""

    reason: str
    note: str
    by: User
    at: datetime


@dataclass
class SetAside:
    """A quarantined task, the marks that put it there, and the kinds of personal information marked in its texts."""

    task: Any
    marks: list[SetAsideMark] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)


def quarantined(project: Project, *, reader: User) -> QuerySet[Task]:
    """Returns the quarantined tasks, the newest first, without those that the reader is rating themselves."""
    tasks = project.tasks.filter(state=Task.State.QUARANTINED).exclude(pk__in=tasks_held_by(reader))
    return tasks.order_by("-pk")


def with_marks(tasks: QuerySet[Task]) -> list[SetAside]:
    """Reads the tasks with what is known about each."""
    rows = {task.pk: SetAside(task) for task in with_beginnings(tasks)}
    for pk, mark in marks_of(list(rows)):
        rows[pk].marks.append(mark)
    spans = PiiSpan.objects.filter(task__in=rows).order_by("task", "kind").values_list("task", "kind").distinct()
    for task, kind in spans:
        rows[task].kinds.append(str(PiiKind(kind).label) if kind in PiiKind.values else kind)
    return list(rows.values())


def marks_of(tasks: Sequence[int]) -> list[tuple[int, SetAsideMark]]:
    """Returns the undecided reports and the skips for personal information of the tasks, the earliest first."""
    found = defaultdict(list)
    reports = Report.objects.filter(assignment__task__in=tasks, decision="")
    skips = Skip.objects.filter(assignment__task__in=tasks, reason=SkipReason.PII)
    for report in reports.select_related("assignment__annotator"):
        mark = SetAsideMark(
            str(report.get_category_display()), report.note, report.assignment.annotator, report.created_at
        )
        found[report.assignment.task_id].append(mark)
    for skip in skips.select_related("assignment__annotator"):
        mark = SetAsideMark(str(skip.get_reason_display()), skip.note, skip.assignment.annotator, skip.created_at)
        found[skip.assignment.task_id].append(mark)
    return [(task, mark) for task, marks in found.items() for mark in sorted(marks, key=lambda mark: mark.at)]
