"""Reads a project's annotations as arrays, by PostgreSQL's binary COPY, whose rows numpy reads as they are."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from django.db import connection

from annotator.models import Origin, Project

Array = np.ndarray[Any, np.dtype[Any]]

_SQL = """
COPY (
    SELECT a.id, t.id, r.response_id, s.annotator_id, extract(epoch FROM a.submitted_at)::float8, s.counts,
           a.origin = %s, COALESCE(a.active_seconds, -1)::float4, COALESCE(a.preference, 0)::int2,
           CASE WHEN cardinality(s.response_order) = 2 THEN s.response_order[1] ELSE -1 END::int2 {scores}
    FROM annotator_task t
    JOIN annotator_assignment s ON s.task_id = t.id
    JOIN annotator_annotation a ON a.assignment_id = s.id AND a.is_current
    JOIN annotator_rating r ON r.annotation_id = a.id
    WHERE t.project_id = %s AND t.state IN ('open', 'complete')
) TO STDOUT (FORMAT binary)
"""
_SCORE = ", COALESCE((r.scores ->> %s)::int2, -1::int2)"
# Each column's name, its type as PostgreSQL sends it, and its type in the arrays.
_COLUMNS = (
    ("annotation", ">i8", "i8"),
    ("task", ">i8", "i8"),
    ("response", ">i8", "i8"),
    ("annotator", ">i8", "i8"),
    ("submitted", ">f8", "f8"),
    ("counts", "?", "?"),
    ("imported", "?", "?"),
    ("active", ">f4", "f4"),
    ("preference", ">i2", "i1"),
    ("first", ">i2", "i1"),
)
# Bytes before the first row of a binary COPY: a signature of 11, the flags and the length of an extension.
_HEADER = 19
# Rows that are converted at once: what PostgreSQL sends is more than twice as large as what is kept.
_CHUNK = 20_000


@dataclass(frozen=True)
class AnnotationArrays:
    """All current annotations of open and complete tasks, in the order of their ids.

    `annotations` has one record per annotation: annotation, task, annotator (the place in `annotators`, which holds the
    users' ids), submitted (seconds since 1970), counts, imported, active (seconds; -1: not known), preference (0:
    none, or a tie), first (the position that was shown first; -1: not known). `ratings` has one record per rated
    response: annotation (the place in `annotations`), response, and scores by attribute (-1: none).
    """

    attributes: tuple[str, ...]
    annotators: Array
    annotations: Array
    ratings: Array


def read(project: Project) -> AnnotationArrays:
    """Reads everything that the checks look at, except for the texts."""
    attributes = tuple(project.attribute_keys())
    rows = _rows(project, attributes)
    rows = rows[np.lexsort((rows["response"], rows["annotation"]))]
    _, begins, place = np.unique(rows["annotation"], return_index=True, return_inverse=True)
    ratings = np.empty(len(rows), [("annotation", "i4"), ("response", "i8"), ("scores", "i1", (len(attributes),))])
    ratings["annotation"], ratings["response"], ratings["scores"] = place, rows["response"], rows["scores"]
    annotations = rows[[name for name, *_ in _COLUMNS if name != "response"]][begins]
    annotators, annotations["annotator"] = np.unique(annotations["annotator"], return_inverse=True)
    return AnnotationArrays(attributes, annotators, annotations, ratings)


def _rows(project: Project, attributes: Sequence[str]) -> Array:
    """Reads one row per annotation and response; of what PostgreSQL sends only a chunk is in memory at a time."""
    scores = [(f"score {number}", ">i2") for number in range(len(attributes))]
    columns = [*((name, wire) for name, wire, _ in _COLUMNS), *scores]
    # A row is the number of its fields, then the length and the value of each.
    lengths = ((("length of " + name, ">i4"), (name, kind)) for name, kind in columns)
    sent_row = np.dtype([("fields", ">i2"), *(part for both in lengths for part in both)])
    own_row = np.dtype([*((name, kind) for name, _, kind in _COLUMNS), ("scores", "i1", (len(attributes),))])
    parts = [np.empty(0, own_row)]
    for block in copied(_SQL.format(scores=_SCORE * len(attributes)), [Origin.IMPORTED, *attributes, project.pk]):
        chunk = np.frombuffer(block, sent_row, len(block) // sent_row.itemsize)
        rows = np.empty(len(chunk), own_row)
        for name, *_ in _COLUMNS:
            rows[name] = chunk[name]
        for number, (name, _) in enumerate(scores):
            rows["scores"][:, number] = chunk[name]
        parts.append(rows)
    return np.concatenate(parts)


def copied(sql: str, values: Sequence[object]) -> Iterator[bytes]:
    """Yields what a binary COPY sends, in blocks of whole rows; the last one ends with the trailer's two bytes."""
    with connection.cursor() as cursor, cursor.copy(sql, values) as copy:
        blocks, skipped = iter(copy), _HEADER
        while block := b"".join(islice(blocks, _CHUNK)):
            yield block[skipped:]
            skipped = 0


_LENGTHS = """
SELECT t.id, length(t.conversation::text) + (
    SELECT COALESCE(sum(length(r.text)), 0) FROM annotator_response r WHERE r.task_id = t.id
)
FROM annotator_task t WHERE t.project_id = %s AND t.id = ANY(%s)
"""


def lengths(project: Project, tasks: Array) -> dict[int, int]:
    """Returns the number of characters of conversation and responses, by task."""
    with connection.cursor() as cursor:
        cursor.execute(_LENGTHS, [project.pk, tasks.tolist()])
        return dict(cursor.fetchall())
