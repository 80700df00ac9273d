"""Keeps a project's totals in line with its ratings: a changed task is taken out as it was counted, and counted again.

Whatever changes a task's ratings queues the task (consensus.settle, and triggers for its state and its deletion). One
transaction counts one batch of the queue, under a lock per project that lets no two processes count at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.db import connection, transaction

from annotator.agreement import counted_ratings, totals
from annotator.agreement.pair_counts import Columns, Kind, added, tallied
from annotator.background import failures, pacing
from annotator.db import locks
from annotator.models import AgreementState, AgreementTotal, Attribute, CountedTask, Project, StaleAgreement

BATCH = 5_000
AT_ONCE = 250
"""The most changes that a page counts itself before it answers."""

_TAKE = """
WITH taken AS (
    DELETE FROM annotator_staleagreement WHERE id IN (
        SELECT id FROM annotator_staleagreement WHERE project_id = %s ORDER BY id LIMIT %s
    ) RETURNING task_id
)
SELECT DISTINCT task_id FROM taken ORDER BY task_id
"""
_QUEUE_ALL = """
INSERT INTO annotator_staleagreement (project_id, task_id)
SELECT t.project_id, t.id FROM annotator_task t
WHERE t.project_id = %s AND EXISTS (SELECT FROM annotator_assignment s WHERE s.task_id = t.id AND s.state = 'submitted')
"""


@dataclass(frozen=True)
class TotalsFreshness:
    """The time at which the totals were right, how many changes are not counted yet, and the columns of the totals."""

    as_of: datetime | None
    pending: int
    columns: Columns


def up_to_date(project: Project, *, now: datetime) -> TotalsFreshness:
    """Counts what has changed, unless that is more than AT_ONCE; then `as_of` and `pending` say how old the totals are.

    If another process is counting, this one does not wait for it.
    """
    pending, state, attributes = waiting(project), _state(project), _attributes(project)
    if 0 < pending <= AT_ONCE or (state and state.attributes != attributes):
        _count_batch_unless_busy(project, now=now, most=AT_ONCE)
        pending, state = waiting(project), _state(project)
    columns = Columns(tuple(state.attributes if state else attributes), ties=project.allow_ties)
    counted_at = state.refreshed_at if state else None
    return TotalsFreshness(counted_at if pending else now, pending, columns)


def waiting(project: Project) -> int:
    """Returns how many changes are not counted yet."""
    return StaleAgreement.objects.filter(project=project).count()


def refresh(project: Project, *, now: datetime, at_once: int = BATCH) -> int:
    """Counts all waiting changes of a project, one batch per transaction; returns of how many tasks."""
    counted = 0
    while batch := _count_batch(project, now=now, most=at_once):
        counted += batch
    return counted


@transaction.atomic
def _count_batch(project: Project, *, now: datetime, most: int) -> int:
    _lock(project)
    attributes, state = _attributes(project), _state(project)
    # A key's meaning depends on the attributes: counts of the old ones cannot be read with the new ones.
    if state and state.attributes != attributes:
        _forget(project)
    # First taken from the queue, then read: a change committed in between is counted now and once more later, which
    # is harmless. The other way round it would be lost.
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, [project.pk, most])
        tasks = [task for (task,) in cursor.fetchall()]
    if tasks:
        _recount(project, tasks, Columns(tuple(attributes), aspects=_aspects(project)))
        counted_now = {"attributes": attributes, "refreshed_at": now}
        AgreementState.objects.update_or_create(project=project, defaults=counted_now)
    return len(tasks)


def refresh_all(*, now: datetime) -> int:
    """Counts all waiting changes of every project that no other worker is counting; returns of how many tasks."""
    stale = StaleAgreement.objects.order_by().values_list("project", flat=True).distinct()
    projects = Project.objects.select_related("rubric").in_bulk(list(stale))
    # Rows of deleted projects would wait for ever.
    StaleAgreement.objects.filter(project__in=set(stale) - set(projects)).delete()

    def refreshed(project: Project) -> int:
        batch = partial(_count_batch_unless_busy, project, now=now, most=BATCH)
        return pacing.alone_in_slices("agreement in slices", project.pk, batch)

    return failures.each_project("refresh_agreement", projects.values(), refreshed)


def rebuild(project: Project, *, now: datetime) -> int:
    """Deletes all counts and counts every task again; returns how many tasks."""
    with transaction.atomic():
        _lock(project)
        _forget(project)
    return refresh(project, now=now, at_once=4 * BATCH)


@transaction.atomic
def _count_batch_unless_busy(project: Project, *, now: datetime, most: int) -> int:
    """Counts a batch, or returns 0 at once if another process is counting: a page must not wait for it."""
    return _count_batch(project, now=now, most=most) if locks.transaction_lock("agreement", project.pk) else 0


def _lock(project: Project) -> None:
    # The commit need not wait for the disk: a crash loses the counts together with the deletion from the queue.
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit TO off")
    locks.waiting_transaction_lock("agreement", project.pk)


def _state(project: Project) -> AgreementState | None:
    return AgreementState.objects.filter(project=project).first()


def _attributes(project: Project) -> list[str]:
    """Returns all attributes that anybody was ever asked by: what was rated under an earlier version counts as well."""
    return [*(one.key for one in project.attributes_ever()), *_aspects(project)]


def _aspects(project: Project) -> tuple[str, ...]:
    return tuple(one.key for one in project.attributes_ever(Attribute.Scope.SEGMENT))


def _forget(project: Project) -> None:
    """Deletes the counts and queues every rated task. The caller holds the project's lock."""
    AgreementState.objects.filter(project=project).delete()
    AgreementTotal.objects.filter(project=project).delete()
    CountedTask.objects.filter(project=project).delete()
    StaleAgreement.objects.filter(project=project).delete()
    with connection.cursor() as cursor:
        cursor.execute(_QUEUE_ALL, [project.pk])


def _recount(project: Project, tasks: Sequence[int], columns: Columns) -> None:
    before, after = totals.counted(tasks, columns.record), counted_ratings.read(tasks, columns)
    old, new = tallied(before, columns), tallied(after, columns)
    for kind in Kind:
        totals.change(project, kind, added(new[kind], old[kind].taken_back()))
    totals.remember(project, tasks, after)
