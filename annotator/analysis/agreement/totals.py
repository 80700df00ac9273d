"""Keeps a project's totals in line with its ratings: a changed task is taken out as it was counted, and counted again.

The counts are packed into one row per owner. Whatever changes a task's ratings queues the task (consensus.settle, and
triggers for its state and its deletion). One transaction counts one batch of the queue, under a lock per project that
lets no two processes count at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import numpy as np
from django.db import connection, transaction

from annotator.analysis.agreement import counted_ratings
from annotator.infrastructure.background import failures, pacing
from annotator.infrastructure.db import locks
from annotator.infrastructure.db.statements import array
from annotator.models import AgreementState, AgreementTotal, Attribute, CountedTask, Project, StaleAgreement
from annotator.statistics.pair_counts import SHARED, Counts, Ints, Kind, PairColumns, Records, added, none, tallied

BATCH = 5_000
AT_ONCE = 250
"""The most changes that a page counts itself before it answers."""

ENTRY = np.dtype([("key", "<u4"), ("count", "<i4")])
"""One key of an owner and its count; the `cells` of a row are a sequence of these."""
_LOW = 2**32 - 1

_LOAD = """
SELECT one, other, cells FROM annotator_agreementtotal t
WHERE project_id = %s AND kind = %s AND (one, other) IN (SELECT * FROM unnest(%s::bigint[], %s::bigint[]))
"""
# All rows travel as one string of bytes, which PostgreSQL cuts: one parameter instead of one for each row.
_SAVE = """
INSERT INTO annotator_agreementtotal (project_id, kind, one, other, shared, cells)
SELECT %s, %s, one, other, shared, substring(%s::bytea FROM start FOR size)
FROM unnest(%s::bigint[], %s::bigint[], %s::int[], %s::int[], %s::int[]) AS x (one, other, shared, start, size)
ON CONFLICT (project_id, kind, one, other) DO UPDATE SET shared = excluded.shared, cells = excluded.cells
"""
_DROP = """
DELETE FROM annotator_agreementtotal
WHERE project_id = %s AND kind = %s AND (one, other) IN (SELECT * FROM unnest(%s::bigint[], %s::bigint[]))
"""


def change(project: Project, kind: Kind, delta: Counts) -> None:
    """Adds the difference to the stored counts; the row of an owner without counts is deleted.

    The caller holds the project's lock, as the rows are read, added to and written back.
    """
    owners = np.unique(delta.owner)
    if not len(owners):
        return
    one, other = _sides(kind, owners)
    with connection.cursor() as cursor:
        cursor.execute(_LOAD, [project.pk, kind, one, other])
        counts = added(unpacked(kind, cursor.fetchall()), delta)
        entries = np.empty(len(counts), ENTRY)
        entries["key"], entries["count"] = counts.key, counts.count
        by_owner = Slices.of(counts.owner)
        chosen = counts[counts.key == SHARED]
        shared = np.zeros(len(by_owner.values), np.int64)
        shared[np.searchsorted(by_owner.values, chosen.owner)] = chosen.count
        columns = [*_sides(kind, by_owner.values), array(shared.tolist()), *by_owner.places(ENTRY)]
        cursor.execute(_SAVE, [project.pk, kind, entries.tobytes(), *columns])
        emptied = np.setdiff1d(owners, by_owner.values)
        if len(emptied):
            cursor.execute(_DROP, [project.pk, kind, *_sides(kind, emptied)])


def stored(project: Project, kind: Kind) -> Counts:
    """Returns the stored counts of one kind."""
    rows = AgreementTotal.objects.filter(project=project, kind=kind).values_list("one", "other", "cells")
    return unpacked(kind, list(rows))


def _sides(kind: Kind, owners: Ints) -> tuple[str, str]:
    """Returns the columns `one` and `other` of the owners as array literals; `other` is 0 except for pairs."""
    if kind != Kind.PAIR:
        return array(owners.tolist()), array([0] * len(owners))
    return array((owners >> 32).tolist()), array((owners & _LOW).tolist())


def sides(owner: int) -> tuple[int, int]:
    """Returns the ids of the two annotators of a pair."""
    return owner >> 32, owner & _LOW


def unpacked(kind: Kind, rows: Sequence[tuple[int, int, bytes | memoryview]]) -> Counts:
    """Returns the counts of stored rows, each of which is `one`, `other` and `cells`."""
    if not rows:
        return none()
    ones, others, cells = zip(*rows, strict=True)
    one, other = np.array(ones, np.int64), np.array(others, np.int64)
    owner = one << 32 | other if kind == Kind.PAIR else one
    entries = np.frombuffer(b"".join(cells), ENTRY)
    sizes = np.array([len(cell) for cell in cells]) // ENTRY.itemsize
    return Counts(np.repeat(owner, sizes), entries["key"].astype(np.int64), entries["count"].astype(np.int64))


@dataclass(frozen=True)
class Slices:
    """The distinct values of a sorted column, where each begins and how often it occurs."""

    values: Ints
    starts: Ints
    sizes: Ints

    @classmethod
    def of(cls, column: Ints) -> "Slices":
        return cls(*np.unique(column, return_index=True, return_counts=True))

    def places(self, entry: np.dtype[np.void]) -> tuple[str, str]:
        """Returns where each value's entries begin in a string of bytes, from 1 on, and how many bytes they are."""
        return array((self.starts * entry.itemsize + 1).tolist()), array((self.sizes * entry.itemsize).tolist())


# Tasks as they were counted --------------------------------------------------------------------------------

_COUNTED = """
SELECT string_agg(ratings, ''::bytea ORDER BY task_id) FROM annotator_countedtask WHERE task_id = ANY(%s::bigint[])
"""
_FEW_COUNTED = """
SELECT count(*), string_agg(ratings, ''::bytea ORDER BY task_id)
FROM (SELECT task_id, ratings FROM annotator_countedtask WHERE project_id = %s LIMIT %s) few
"""
_REMEMBER = """
INSERT INTO annotator_countedtask (project_id, task_id, ratings)
SELECT %s, task, substring(%s::bytea FROM start FOR size)
FROM unnest(%s::bigint[], %s::int[], %s::int[]) AS x (task, start, size)
ON CONFLICT (task_id) DO UPDATE SET ratings = excluded.ratings
"""


def counted(tasks: Sequence[int], record: np.dtype[np.void]) -> Records:
    """Returns the records of these tasks as they were counted: what has to be taken out of the totals again."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNTED, [array(tasks)])
        return np.frombuffer(cursor.fetchone()[0] or b"", record)


def few_counted(project: Project, record: np.dtype[np.void], *, most: int) -> Records | None:
    """Returns the records of all counted tasks, or None if there are more than `most`."""
    # One task more than the limit is enough to know that there are too many.
    with connection.cursor() as cursor:
        cursor.execute(_FEW_COUNTED, [project.pk, most + 1])
        tasks, ratings = cursor.fetchone()
    return None if tasks > most else np.frombuffer(ratings or b"", record)


def remember(project: Project, tasks: Sequence[int], records: Records) -> None:
    """Stores the records that the totals now hold, in place of what is stored for these tasks."""
    by_task = Slices.of(records["task"])
    uncounted = np.setdiff1d(np.array(tasks, np.int64), by_task.values).tolist()
    with connection.cursor() as cursor:
        columns = [array(by_task.values.tolist()), *by_task.places(records.dtype)]
        cursor.execute(_REMEMBER, [project.pk, records.tobytes(), *columns])
        if uncounted:
            cursor.execute("DELETE FROM annotator_countedtask WHERE task_id = ANY(%s::bigint[])", [array(uncounted)])


# Keeping up with the ratings -------------------------------------------------------------------------------

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
    columns: PairColumns


def up_to_date(project: Project, *, now: datetime) -> TotalsFreshness:
    """Counts what has changed, unless that is more than AT_ONCE; then `as_of` and `pending` say how old the totals are.

    If another process is counting, this one does not wait for it.
    """
    waiting = StaleAgreement.objects.filter(project=project)
    pending, state, columns = waiting.count(), _state(project), _columns(project)
    if 0 < pending <= AT_ONCE or (state and tuple(state.attributes) != columns.attributes):
        _count_batch(project, now=now, most=AT_ONCE, wait=False)
        pending, state = waiting.count(), _state(project)
    attributes = tuple(state.attributes) if state else columns.attributes
    counted_at = state.refreshed_at if state else None
    return TotalsFreshness(counted_at if pending else now, pending, PairColumns(attributes, ties=project.allow_ties))


def refresh(project: Project, *, now: datetime, at_once: int = BATCH) -> int:
    """Counts all waiting changes of a project, one batch per transaction; returns of how many tasks."""
    tasks = 0
    while batch := _count_batch(project, now=now, most=at_once):
        tasks += batch
    return tasks


def refresh_all(*, now: datetime) -> int:
    """Counts all waiting changes of every project that no other worker is counting; returns of how many tasks."""
    stale = StaleAgreement.objects.order_by().values_list("project", flat=True).distinct()
    projects = Project.objects.select_related("rubric").in_bulk(list(stale))
    # Rows of deleted projects would wait for ever.
    StaleAgreement.objects.filter(project__in=set(stale) - set(projects)).delete()

    def refreshed(project: Project) -> int:
        batch = partial(_count_batch, project, now=now, most=BATCH, wait=False)
        return pacing.alone_in_slices("agreement in slices", project.pk, batch)

    return failures.each_project("refresh_agreement", projects.values(), refreshed)


def rebuild(project: Project, *, now: datetime) -> int:
    """Deletes all counts and counts every task again; returns how many tasks."""
    with transaction.atomic():
        _lock(project)
        _forget(project)
    return refresh(project, now=now, at_once=4 * BATCH)


@transaction.atomic
def _count_batch(project: Project, *, now: datetime, most: int, wait: bool = True) -> int:
    """Counts a batch; returns of how many tasks. Unless it may wait, it counts none while another process does."""
    if not wait and not locks.transaction_lock("agreement", project.pk):
        return 0
    _lock(project)
    columns, state = _columns(project), _state(project)
    # A key's meaning depends on the attributes: counts of the old ones cannot be read with the new ones.
    if state and tuple(state.attributes) != columns.attributes:
        _forget(project)
    # First taken from the queue, then read: a change committed in between is counted now and once more later, which
    # is harmless. The other way round it would be lost.
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, [project.pk, most])
        tasks = [task for (task,) in cursor.fetchall()]
    if tasks:
        before, after = counted(tasks, columns.record), counted_ratings.read(tasks, columns)
        old, new = tallied(before, columns), tallied(after, columns)
        for kind in Kind:
            change(project, kind, added(new[kind], old[kind].taken_back()))
        remember(project, tasks, after)
        counted_now = {"attributes": list(columns.attributes), "refreshed_at": now}
        AgreementState.objects.update_or_create(project=project, defaults=counted_now)
    return len(tasks)


def _lock(project: Project) -> None:
    # The commit need not wait for the disk: a crash loses the counts together with the deletion from the queue.
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit TO off")
    locks.waiting_transaction_lock("agreement", project.pk)


def _forget(project: Project) -> None:
    """Deletes the counts and queues every rated task. The caller holds the project's lock."""
    for model in (AgreementState, AgreementTotal, CountedTask, StaleAgreement):
        model.objects.filter(project=project).delete()
    with connection.cursor() as cursor:
        cursor.execute(_QUEUE_ALL, [project.pk])


def _state(project: Project) -> AgreementState | None:
    return AgreementState.objects.filter(project=project).first()


def _columns(project: Project) -> PairColumns:
    """Returns all attributes that anybody was ever asked by: what was rated under an earlier version counts as well."""
    whole, aspects = ([one.key for one in project.attributes_ever(scope)] for scope in Attribute.Scope)
    return PairColumns((*whole, *aspects), aspects=tuple(aspects))
