"""Counters, states, consensus and labels recomputed from the assignments: to mend them, or to see that all is well."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.db import connection, transaction

from annotator import audit, consensus
from annotator.background import failures, messages
from annotator.db import locks
from annotator.db.retries import in_transaction
from annotator.models import Consensus, Label, Project, RecountWanted, Task

AT_ONCE = 200
Facts = dict[str, Any]

_OF_TASK = ("slots_wanted", "open_slots", "done", "state", "review_because", "review_spread")
_OF_CONSENSUS = ("kept", "annotators", "spread", "spread_of_all", "preference", "pairs", "dropped_because")


def recount(project: Project, *, now: datetime) -> int:
    """Recomputes slots, states and labels of every task by the project's rules of today; returns how many tasks."""
    wanted = list(project.recounts_wanted.values_list("pk", flat=True))
    counted = sum(_recount_some(project, some, now=now) for some in _in_portions(project))
    _recount_tallies(project)
    audit.record("project.recounted", f"project {project.slug}", project=project, tasks=counted)
    RecountWanted.objects.filter(pk__in=wanted).delete()  # those that were asked for meanwhile stay
    return counted


@transaction.atomic
def recount_later(project: Project) -> None:
    """Leaves it to the light worker; a message that is lost is sent again by the row."""
    RecountWanted.objects.create(project=project)
    messages.send_on_commit("annotator.tasks.recount", [project.pk])


def recount_wanted(project: Project, *, now: datetime) -> int:
    """Recounts unless somebody is at it, and what was asked for since is found again; returns how many tasks."""
    with locks.session_lock("recount", project.pk) as is_alone:
        return recount(project, now=now) if is_alone else 0


def recount_all_wanted(*, now: datetime) -> int:
    """What was asked for and not done; returns how many tasks."""
    projects = Project.objects.filter(recounts_wanted__isnull=False).distinct()
    return failures.each_project("recount", projects, partial(recount_wanted, now=now))


def _in_portions(project: Project) -> Iterator[list[int]]:
    """The ids of all tasks, in order."""
    last = 0
    while True:
        later = Task.objects.filter(project=project, pk__gt=last).order_by("pk").values_list("pk", flat=True)
        numbers = list(later[:AT_ONCE])
        if not numbers:
            return
        yield numbers
        last = numbers[-1]


@in_transaction
def _recount_some(project: Project, numbers: Sequence[int], *, now: datetime) -> int:
    return len(_settled(numbers, project=project, now=now))


def _settled(numbers: Sequence[int], *, project: Project, now: datetime) -> list[Task]:
    chosen = Task.objects.filter(pk__in=numbers).order_by("pk").select_for_update()
    tasks = list(chosen.defer("conversation", "metadata"))
    consensus.settle(tasks, project=project, now=now)
    return tasks


_ADD_TALLIES = """
INSERT INTO annotator_tally (annotator_id, project_id)
SELECT DISTINCT s.annotator_id, t.project_id FROM annotator_assignment s JOIN annotator_task t ON t.id = s.task_id
WHERE t.project_id = %s ON CONFLICT DO NOTHING
"""
# By the difference, so that a submission which comes meanwhile is counted too.
_COUNT_TALLIES = """
UPDATE annotator_tally y SET done = y.done + counted.difference FROM (
    SELECT y.id, count(t.id) - y.done AS difference FROM annotator_tally y
    LEFT JOIN annotator_assignment s ON s.annotator_id = y.annotator_id AND s.state = 'submitted'
    LEFT JOIN annotator_task t ON t.id = s.task_id AND t.project_id = y.project_id
    WHERE y.project_id = %s GROUP BY y.id, y.done
) counted WHERE counted.id = y.id AND counted.difference <> 0
"""


@in_transaction
def _recount_tallies(project: Project) -> None:
    """What every annotator has rated."""
    with connection.cursor() as cursor:
        cursor.execute(_ADD_TALLIES, [project.pk])
        cursor.execute(_COUNT_TALLIES, [project.pk])


# What differs ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """One stored value that a recomputation does not give."""

    subject: str
    name: str
    stored: Any
    recomputed: Any

    def __str__(self) -> str:
        return f"{self.subject}: {self.name} is {self.stored!r}, recomputed {self.recomputed!r}"


def differences(project: Project, *, now: datetime) -> Iterator[Difference]:
    """Recomputes every task and annotator of the project, changes nothing, and tells what is stored differently."""
    for numbers in _in_portions(project):
        yield from _of_tasks(numbers, project=project, now=now)
    yield from _of_tallies(project)


def _of_tasks(numbers: Sequence[int], *, project: Project, now: datetime) -> list[Difference]:
    with transaction.atomic():
        list(Task.objects.filter(pk__in=numbers).order_by("pk").select_for_update().values_list("pk"))
        stored = _facts(numbers)
        _settled(numbers, project=project, now=now)
        recomputed = _facts(numbers)
        transaction.set_rollback(True)
    return [
        Difference(f"task {task}", name, stored[task].get(name), recomputed[task].get(name))
        for task in stored
        for name in sorted({*stored[task], *recomputed[task]})
        if stored[task].get(name) != recomputed[task].get(name)
    ]


def _facts(numbers: Sequence[int]) -> dict[str, Facts]:
    """The facts about each task, keyed by the task's external id."""
    rows = list(Task.objects.filter(pk__in=numbers).values("pk", "external_id", *_OF_TASK))
    names = {row["pk"]: row["external_id"] for row in rows}
    for row in rows:
        if row["review_because"] == Task.Review.UNLIKELY:
            row["review_because"] = ""  # a model's doubt, which no recount decides
    facts: dict[str, Facts] = {row["external_id"]: {name: row[name] for name in _OF_TASK} for row in rows}
    for row in Consensus.objects.filter(task__in=numbers).values("task", *_OF_CONSENSUS):
        facts[names[row["task"]]] |= {f"consensus.{name}": row[name] for name in _OF_CONSENSUS}
    labels = Label.objects.filter(response__task__in=numbers, source=Label.Source.CONSENSUS)
    for task, position, scores, means in labels.values_list("response__task", "response__position", "scores", "means"):
        facts[names[task]] |= {f"label.{position}": scores, f"mean.{position}": means}
    return facts


_TALLIES = """
SELECT u.username, coalesce(y.done, 0), coalesce(s.done, 0)
FROM (
    SELECT s.annotator_id, count(*) AS done FROM annotator_assignment s JOIN annotator_task t ON t.id = s.task_id
    WHERE t.project_id = %(project)s AND s.state = 'submitted' GROUP BY s.annotator_id
) s
FULL JOIN (SELECT * FROM annotator_tally WHERE project_id = %(project)s) y ON y.annotator_id = s.annotator_id
JOIN annotator_user u ON u.id = coalesce(s.annotator_id, y.annotator_id)
WHERE coalesce(y.done, 0) <> coalesce(s.done, 0)
"""


def _of_tallies(project: Project) -> list[Difference]:
    with connection.cursor() as cursor:
        cursor.execute(_TALLIES, {"project": project.pk})
        return [Difference(f"annotator {name}", "done", stored, real) for name, stored, real in cursor.fetchall()]
