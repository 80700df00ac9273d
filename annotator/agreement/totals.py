"""Stores a project's counts, packed into one row per owner; adds to them, takes them back, and reads them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from django.db import connection

from annotator.agreement.array_parameters import array
from annotator.agreement.pair_counts import SHARED, Counts, Ints, Kind, Records, added, none
from annotator.models import AgreementTotal, Project

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
        by_owner = slices(counts.owner)
        columns = [
            *_sides(kind, by_owner.values),
            _shared(counts, by_owner.values),
            *by_owner.places(ENTRY),
        ]
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

    def places(self, entry: np.dtype[np.void]) -> tuple[str, str]:
        """Returns where each value's entries begin in a string of bytes, from 1 on, and how many bytes they are."""
        return array((self.starts * entry.itemsize + 1).tolist()), array((self.sizes * entry.itemsize).tolist())


def slices(column: Ints) -> Slices:
    """Finds the distinct values of a sorted column."""
    values, starts, sizes = np.unique(column, return_index=True, return_counts=True)
    return Slices(values, starts, sizes)


def _shared(counts: Counts, owners: Ints) -> str:
    """Returns how many responses each of the sorted owners shares, as an array literal."""
    chosen = counts[counts.key == SHARED]
    shared = np.zeros(len(owners), np.int64)
    shared[np.searchsorted(owners, chosen.owner)] = chosen.count
    return array(shared.tolist())


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
    by_task = slices(records["task"])
    uncounted = np.setdiff1d(np.array(tasks, np.int64), by_task.values).tolist()
    with connection.cursor() as cursor:
        columns = [array(by_task.values.tolist()), *by_task.places(records.dtype)]
        cursor.execute(_REMEMBER, [project.pk, records.tobytes(), *columns])
        if uncounted:
            cursor.execute("DELETE FROM annotator_countedtask WHERE task_id = ANY(%s::bigint[])", [array(uncounted)])
