"""A project's annotations as arrays: read by PostgreSQL's binary COPY, which numpy takes as it comes."""

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
# Name, how PostgreSQL sends it, how it is kept.
_OF_ANNOTATION = (
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
_HEADER = 19
_CHUNK = 20_000


@dataclass(frozen=True)
class Work:
    """All current annotations of open and complete tasks, in the order of their ids.

    `annotations` has a record each: annotation, task, annotator (its place in `annotators`, the users' ids), submitted
    (seconds since 1970), counts, imported, active (seconds; -1: not known), preference (0: none), first (the position
    that was shown first; -1: not known). `ratings` has one for each response of each: annotation (its place above),
    response, and scores by attribute (-1: none).
    """

    attributes: tuple[str, ...]
    annotators: Array
    annotations: Array
    ratings: Array


def read(project: Project) -> Work:
    """Everything that the checks look at, but for the texts."""
    attributes = tuple(project.attribute_keys())
    rows = _rows(project, attributes)
    rows = rows[np.lexsort((rows["response"], rows["annotation"]))]
    _, begins, place = np.unique(rows["annotation"], return_index=True, return_inverse=True)
    ratings = np.empty(len(rows), [("annotation", "i4"), ("response", "i8"), ("scores", "i1", (len(attributes),))])
    ratings["annotation"], ratings["response"], ratings["scores"] = place, rows["response"], rows["scores"]
    annotations = rows[[name for name, *_ in _OF_ANNOTATION if name != "response"]][begins]
    annotators, annotations["annotator"] = np.unique(annotations["annotator"], return_inverse=True)
    return Work(attributes, annotators, annotations, ratings)


def _rows(project: Project, attributes: Sequence[str]) -> Array:
    """One for each annotation and response; of what PostgreSQL sends only a chunk is held at a time."""
    scores = [(f"score {number}", ">i2") for number in range(len(attributes))]
    columns = [*((name, sent) for name, sent, _ in _OF_ANNOTATION), *scores]
    lengths = ((("length of " + name, ">i4"), (name, kind)) for name, kind in columns)
    sent = np.dtype([("fields", ">i2"), *(part for both in lengths for part in both)])
    kept = np.dtype([*((name, kind) for name, _, kind in _OF_ANNOTATION), ("scores", "i1", (len(attributes),))])
    parts = [np.empty(0, kept)]
    for block in copied(_SQL.format(scores=_SCORE * len(attributes)), [Origin.IMPORTED, *attributes, project.pk]):
        chunk = np.frombuffer(block, sent, len(block) // sent.itemsize)
        rows = np.empty(len(chunk), kept)
        for name, *_ in _OF_ANNOTATION:
            rows[name] = chunk[name]
        for number, (name, _) in enumerate(scores):
            rows["scores"][:, number] = chunk[name]
        parts.append(rows)
    return np.concatenate(parts)


def copied(sql: str, values: Sequence[object]) -> Iterator[bytes]:
    """What a binary COPY sends, in blocks of whole rows; after the last of all come two bytes that end the copy."""
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
    """Characters of conversation and responses, by task."""
    with connection.cursor() as cursor:
        cursor.execute(_LENGTHS, [project.pk, tasks.tolist()])
        return dict(cursor.fetchall())
