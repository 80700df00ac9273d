"""Reads the ratings of segments that count. Each segment of a response is a sample of its own."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from annotator.models.in_force import KEPT_IN_FORCE
from annotator.segmenting import Range, carried, finest_common_cut, ranges

_SQL = f"""
SELECT t.id, r.response_id, a.id, s.annotator_id, extract(epoch FROM a.submitted_at)::float8, left(a.content_hash, 16),
    COALESCE(a.id = ANY({KEPT_IN_FORCE}), false), a.aspects, r.segment_scores::text,
    r.cut::text, p.segments::text
FROM annotator_task t
JOIN annotator_assignment s ON s.task_id = t.id AND s.counts
JOIN annotator_annotation a ON a.assignment_id = s.id AND a.is_current
JOIN annotator_rating r ON r.annotation_id = a.id AND r.segment_scores IS NOT NULL
JOIN annotator_response p ON p.id = r.response_id
LEFT JOIN annotator_consensus c ON c.task_id = t.id
WHERE t.id = ANY(%s) AND t.state IN ('open', 'complete')
"""


@dataclass(frozen=True)
class SegmentRatings:
    """What one annotation says of one response: scores [segments, aspects], -1 where an aspect does not apply."""

    task: int
    response: int
    annotation: int
    annotator: int
    submitted: float
    content: str
    kept: bool
    scores: NDArray[np.int8]


def read(tasks: Sequence[int], aspects: Sequence[str]) -> Iterator[SegmentRatings]:
    """Yields the ratings of segments by these aspects. All of a response have the segments of its finest common cut."""
    with connection.cursor() as cursor:
        cursor.execute(_SQL, [list(tasks)])
        by_response: dict[int, list[Sequence[Any]]] = defaultdict(list)
        for row in cursor:
            by_response[row[1]].append(row)
    for rows in by_response.values():
        yield from _of_response(rows, aspects)


def _of_response(rows: Sequence[Sequence[Any]], aspects: Sequence[str]) -> Iterator[SegmentRatings]:
    stored: tuple[Range, ...] = ()
    common: tuple[Range, ...] = ()
    if any(cut for *_, cut, _segments in rows):
        stored = ranges(json.loads(rows[0][-1] or "[]"))
        common = finest_common_cut([stored, *(ranges(json.loads(cut)) for *_, cut, _segments in rows if cut)])
    for task, response, annotation, annotator, submitted, content, kept, rated_by, scores, cut, _segments in rows:
        places = [rated_by.index(aspect) if aspect in rated_by else None for aspect in aspects]
        values = [[_value(row, place) for place in places] for row in json.loads(scores)]
        if common:
            values = list(carried(values, ranges(json.loads(cut)) if cut else stored, onto=common))
        table = np.array(values, np.int8).reshape(-1, len(aspects))
        yield SegmentRatings(task, response, annotation, annotator, submitted, content, kept, table)


def _value(row: Sequence[int | None], place: int | None) -> int:
    score = None if place is None else row[place]
    return -1 if score is None else score
