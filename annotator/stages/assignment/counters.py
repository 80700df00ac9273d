"""Recomputes counters, states, consensus and labels from the assignments, to correct them or to check them."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from django.db import connection, transaction

from annotator.infrastructure import audit
from annotator.infrastructure.background import failures, messages
from annotator.infrastructure.db import locks
from annotator.infrastructure.db.retries import in_transaction
from annotator.models import Consensus, Label, Project, RecountWanted, Task
from annotator.reading.search.criteria import Difference
from annotator.stages import consensus

AT_ONCE = 200
Facts = dict[str, Any]

_TASK_FIELDS = ("slots_wanted", "open_slots", "done", "state", "review_reason", "review_spread")
_CONSENSUS_FIELDS = ("kept", "annotators", "spread", "spread_of_all", "preference", "pairs", "drop_reason")


def recount(project: Project, *, now: datetime) -> int:
    """Recomputes slots, states and labels of every task by the project's rules of today; returns how many tasks."""
    # Read before the first task is counted: a request made during the recount stays, as it may concern tasks that
    # are already done.
    wanted = list(project.recounts_wanted.values_list("pk", flat=True))
    counted = sum(len(_settled(portion, project=project, now=now)) for portion in _in_portions(project))
    _recount_tallies(project)
    audit.record("project.recounted", f"project {project.slug}", project=project, tasks=counted)
    # Only now: a worker that dies before this line leaves the request to be found again.
    RecountWanted.objects.filter(pk__in=wanted).delete()
    return counted


@transaction.atomic
def recount_later(project: Project) -> None:
    """Leaves the recount to the light worker. If the message is lost, `recount_all_wanted` finds the row."""
    RecountWanted.objects.create(project=project)
    messages.send_on_commit("annotator.tasks.recount", [project.pk])


def recount_wanted(project: Project, *, now: datetime) -> int:
    """Recounts unless another process is recounting the project; returns how many tasks.

    A request that this call leaves to the other process keeps its row, and is found again by `recount_all_wanted`.
    """
    # A session lock, as a recount is many transactions.
    with locks.session_lock("recount", project.pk) as is_alone:
        return recount(project, now=now) if is_alone else 0


def recount_all_wanted(*, now: datetime) -> int:
    """Does every recount that was requested and is not done; returns how many tasks."""
    projects = Project.objects.filter(recounts_wanted__isnull=False).distinct()
    return failures.each_project("recount", projects, partial(recount_wanted, now=now))


def _in_portions(project: Project) -> Iterator[list[int]]:
    """Yields the ids of all tasks in ascending order, AT_ONCE at a time."""
    last = 0
    while True:
        # By key instead of OFFSET, which would read everything before it again for each portion.
        later = Task.objects.filter(project=project, pk__gt=last).order_by("pk").values_list("pk", flat=True)
        numbers = list(later[:AT_ONCE])
        if not numbers:
            return
        yield numbers
        last = numbers[-1]


# One transaction per portion: nobody who rates waits longer than for AT_ONCE tasks.
@in_transaction
def _settled(numbers: Sequence[int], *, project: Project, now: datetime) -> list[Task]:
    tasks = Task.objects.locked(numbers)
    consensus.settle(tasks, project=project, now=now)
    return tasks


_ADD_TALLIES = """
INSERT INTO annotator_tally (annotator_id, project_id)
SELECT DISTINCT s.annotator_id, t.project_id FROM annotator_assignment s JOIN annotator_task t ON t.id = s.task_id
WHERE t.project_id = %s ON CONFLICT DO NOTHING
"""
# Adds the difference instead of setting the count, so that a submission committed meanwhile is not lost.
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
    """Recomputes how many tasks each annotator has rated."""
    with connection.cursor() as cursor:
        cursor.execute(_ADD_TALLIES, [project.pk])
        cursor.execute(_COUNT_TALLIES, [project.pk])


# What differs ----------------------------------------------------------------------------------------------


def differences(project: Project, *, now: datetime) -> Iterator[Difference]:
    """Recomputes every task and annotator of the project, and yields what differs from the stored values.

    It changes nothing.
    """
    for numbers in _in_portions(project):
        yield from _task_differences(numbers, project=project, now=now)
    with connection.cursor() as cursor:
        cursor.execute(_TALLY_DIFFERENCES, {"project": project.pk})
        tallies = cursor.fetchall()
    for name, stored, recomputed in tallies:
        yield Difference(f"annotator {name}", "done", stored, recomputed)


def _task_differences(numbers: Sequence[int], *, project: Project, now: datetime) -> list[Difference]:
    # The recount itself runs, and is rolled back: a copy of its rules that only reads could differ from it.
    with transaction.atomic():
        # Locked before the first read, or a submission between the two reads would look like a difference.
        Task.objects.locked(numbers)
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
    """Returns the facts about each task, keyed by the task's external id."""
    rows = list(Task.objects.filter(pk__in=numbers).values("pk", "external_id", *_TASK_FIELDS))
    names = {row["pk"]: row["external_id"] for row in rows}
    for row in rows:
        if row["review_reason"] == Task.Review.UNLIKELY:
            row["review_reason"] = ""  # set by a model's doubt, which no recount decides
    facts: dict[str, Facts] = {row["external_id"]: {name: row[name] for name in _TASK_FIELDS} for row in rows}
    for row in Consensus.objects.filter(task__in=numbers).values("task", *_CONSENSUS_FIELDS):
        facts[names[row["task"]]] |= {f"consensus.{name}": row[name] for name in _CONSENSUS_FIELDS}
    labels = Label.objects.filter(response__task__in=numbers, source=Label.Source.CONSENSUS)
    for task, position, scores, means in labels.values_list("response__task", "response__position", "scores", "means"):
        facts[names[task]] |= {f"label.{position}": scores, f"mean.{position}": means}
    return facts


_TALLY_DIFFERENCES = """
SELECT u.username, coalesce(y.done, 0), coalesce(s.done, 0)
FROM (
    SELECT s.annotator_id, count(*) AS done FROM annotator_assignment s JOIN annotator_task t ON t.id = s.task_id
    WHERE t.project_id = %(project)s AND s.state = 'submitted' GROUP BY s.annotator_id
) s
FULL JOIN (SELECT * FROM annotator_tally WHERE project_id = %(project)s) y ON y.annotator_id = s.annotator_id
JOIN annotator_user u ON u.id = coalesce(s.annotator_id, y.annotator_id)
WHERE coalesce(y.done, 0) <> coalesce(s.done, 0)
"""
