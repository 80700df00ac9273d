"""The stored counts of a project: packed into a row an owner, added to, taken back, read."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from django.db import connection

from annotator.agreement.array_parameters import array
from annotator.agreement.pair_counts import SHARED, Counts, Ints, Kind, Records, added, none
from annotator.models import AgreementTotal, Project

ENTRY = np.dtype([("key", "<u4"), ("count", "<i4")])
"""One key of an owner; a row's cells are these, one after the other."""
_LOW = 2**32 - 1

_LOAD = """
SELECT one, other, cells FROM annotator_agreementtotal t
WHERE project_id = %s AND kind = %s AND (one, other) IN (SELECT * FROM unnest(%s::bigint[], %s::bigint[]))
"""
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
    """Adds to the stored counts; an owner of whom nothing is left has no row."""
    owners = np.unique(delta.owner)
    if not len(owners):
        return
    one, other = _sides(kind, owners)
    with connection.cursor() as cursor:
        cursor.execute(_LOAD, [project.pk, kind, one, other])
        news = added(unpacked(kind, cursor.fetchall()), delta)
        cells, left = _packed(news), slices(news.owner)
        sides = _sides(kind, left.values)
        cursor.execute(
            _SAVE, [project.pk, kind, cells.tobytes(), *sides, _shared(news, left.values), *left.places(ENTRY)]
        )
        gone = np.setdiff1d(owners, left.values)
        if len(gone):
            cursor.execute(_DROP, [project.pk, kind, *_sides(kind, gone)])


def stored(project: Project, kind: Kind) -> Counts:
    """Every stored row of one kind."""
    rows = AgreementTotal.objects.filter(project=project, kind=kind).values_list("one", "other", "cells")
    return unpacked(kind, list(rows))


def _sides(kind: Kind, owners: Ints) -> tuple[str, str]:
    """The columns that name the owners. Only a pair has two."""
    if kind != Kind.PAIR:
        return array(owners.tolist()), array([0] * len(owners))
    return array((owners >> 32).tolist()), array((owners & _LOW).tolist())


def sides(owner: int) -> tuple[int, int]:
    """The two annotators of a pair."""
    return owner >> 32, owner & _LOW


def unpacked(kind: Kind, rows: Sequence[tuple[int, int, bytes | memoryview]]) -> Counts:
    """The counts of stored rows: `one`, `other` and `cells` of each."""
    if not rows:
        return none()
    ones, others, cells = zip(*rows, strict=True)
    one, other = np.array(ones, np.int64), np.array(others, np.int64)
    owner = one << 32 | other if kind == Kind.PAIR else one
    entries = np.frombuffer(b"".join(cells), ENTRY)
    sizes = np.array([len(cell) for cell in cells]) // ENTRY.itemsize
    return Counts(np.repeat(owner, sizes), entries["key"].astype(np.int64), entries["count"].astype(np.int64))


def _packed(counts: Counts) -> Records:
    entries = np.empty(len(counts), ENTRY)
    entries["key"], entries["count"] = counts.key, counts.count
    return entries


@dataclass(frozen=True)
class Slices:
    """The values of a sorted column, where each begins and how often it stands there."""

    values: Ints
    starts: Ints
    sizes: Ints

    def places(self, entry: np.dtype[np.void]) -> tuple[str, str]:
        """Where each begins and how long it is in a string of bytes, as PostgreSQL counts."""
        return array((self.starts * entry.itemsize + 1).tolist()), array((self.sizes * entry.itemsize).tolist())


def slices(column: Ints) -> Slices:
    values, starts, sizes = np.unique(column, return_index=True, return_counts=True)
    return Slices(values, starts, sizes)


def _shared(counts: Counts, owners: Ints) -> str:
    chosen = counts[counts.key == SHARED]
    owner_ids = np.zeros(len(owners), np.int64)
    owner_ids[np.searchsorted(owners, chosen.owner)] = chosen.count
    return array(owner_ids.tolist())


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
    """The records of these tasks that the totals hold now."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNTED, [array(tasks)])
        return np.frombuffer(cursor.fetchone()[0] or b"", record)


def few_counted(project: Project, record: np.dtype[np.void], *, most: int) -> Records | None:
    """The records of all counted tasks; None if there are more than `most`."""
    with connection.cursor() as cursor:
        cursor.execute(_FEW_COUNTED, [project.pk, most + 1])
        tasks, ratings = cursor.fetchone()
    return None if tasks > most else np.frombuffer(ratings or b"", record)


def remember(project: Project, tasks: Sequence[int], records: Records) -> None:
    """Keeps the records that are in the totals now, in place of the tasks' former ones."""
    by_task = slices(records["task"])
    gone = np.setdiff1d(np.array(tasks, np.int64), by_task.values).tolist()
    with connection.cursor() as cursor:
        known = [array(by_task.values.tolist()), *by_task.places(records.dtype)]
        cursor.execute(_REMEMBER, [project.pk, records.tobytes(), *known])
        if gone:
            cursor.execute("DELETE FROM annotator_countedtask WHERE task_id = ANY(%s::bigint[])", [array(gone)])
