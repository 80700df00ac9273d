"""Reads the ratings that count as numpy records: PostgreSQL packs them into one value, which numpy reads as it is."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from annotator.infrastructure.db.statements import array
from annotator.models import NEITHER_VALID, TIE
from annotator.models.in_force import KEPT_IN_FORCE
from annotator.stages.segmenting import Range, carried, finest_common_cut, ranges
from annotator.statistics.pair_counts import PairColumns, PairFlag, Records, Samples

# OFFSET 0 keeps the subquery whole, so that it runs once per task and through the indexes: for some hundreds of tasks
# the planner would otherwise read whole tables. The send functions write big-endian numbers, in the order of _FIELDS.
_SQL = f"""
SELECT string_agg(ratings, ''::bytea) FROM unnest(%s::bigint[]) AS chosen (id) CROSS JOIN LATERAL (
    SELECT int8send(t.id) || int8send(COALESCE(r.response_id, 0)) || int8send(a.id) || int8send(s.annotator_id)
           || float8send(extract(epoch FROM a.submitted_at)::float8) || convert_to(rpad(a.content_hash, 16), 'UTF8')
           || boolsend(COALESCE(a.id = ANY({KEPT_IN_FORCE}), false))
           || int2send(COALESCE(a.preference, -1000::int2)) || int2send(COALESCE(r.safe::int, -1)::int2)
           {{scores}} AS ratings
    FROM annotator_task t
    JOIN annotator_assignment s ON s.task_id = t.id AND s.counts
    JOIN annotator_annotation a ON a.assignment_id = s.id AND a.is_current
    LEFT JOIN annotator_consensus c ON c.task_id = t.id
    LEFT JOIN annotator_rating r ON r.annotation_id = a.id
    WHERE t.id = chosen.id AND t.state IN ('open', 'complete')
    OFFSET 0
) AS packed
"""
_SCORE = " || int2send(COALESCE((r.scores ->> %s)::int2, -1::int2))"
_FIELDS = (
    ("task", ">i8"),
    ("response", ">i8"),
    ("annotation", ">i8"),
    ("annotator", ">i8"),
    ("submitted", ">f8"),
    ("content", "S16"),
    ("kept", "?"),
    ("preference", ">i2"),
    ("safe", ">i2"),
)
# In seconds: 1 January 1970 was a Thursday.
FIRST_MONDAY = 4 * 86_400
WEEK = 7 * 86_400
_NO_PREFERENCE = -1000
_FIRST_SEGMENT = -(2**48)
_RANK = {-3: 0, -2: 1, -1: 2, TIE: 3, 1: 4, 2: 5, 3: 6}
_RANKED_FIELDS = (*_FIELDS[:1], *_FIELDS[2:7], ("first", ">i8"), ("second", ">i8"), ("order", ">i2"))
_TIERS = """SELECT listed.id::bigint, tier.rank
    FROM jsonb_array_elements(a.ranking) WITH ORDINALITY AS tier (ids, rank),
        jsonb_array_elements_text(tier.ids) AS listed (id)"""
# Every two responses in both orders, so that the result does not depend on which of them was imported first.
_RANKED = f"""
SELECT string_agg(pairs, ''::bytea) FROM unnest(%s::bigint[]) AS chosen (id) CROSS JOIN LATERAL (
    SELECT int8send(t.id) || int8send(a.id) || int8send(s.annotator_id)
           || float8send(extract(epoch FROM a.submitted_at)::float8) || convert_to(rpad(a.content_hash, 16), 'UTF8')
           || boolsend(COALESCE(a.id = ANY({KEPT_IN_FORCE}), false))
           || int8send(one.id) || int8send(other.id) || int2send((1 + sign(one.rank - other.rank))::int2) AS pairs
    FROM annotator_task t
    JOIN annotator_assignment s ON s.task_id = t.id AND s.counts
    JOIN annotator_annotation a ON a.assignment_id = s.id AND a.is_current AND a.ranking IS NOT NULL
    LEFT JOIN annotator_consensus c ON c.task_id = t.id
    CROSS JOIN LATERAL ({_TIERS}) one
    CROSS JOIN LATERAL ({_TIERS}) other
    WHERE t.id = chosen.id AND t.state IN ('open', 'complete') AND one.id <> other.id
    OFFSET 0
) AS packed
"""


def read(tasks: Sequence[int], columns: PairColumns) -> Records:
    """Reads the current annotations that count, of those of the tasks that are open or complete.

    Returns records of `columns.record`, sorted by task, response and time of submission.
    """
    layout = np.dtype([*_FIELDS, *((f"score {key}", ">i2") for key in columns.attributes)])
    with connection.cursor() as cursor:
        # One row per annotation and response; an annotation that rates no response has one row, with response 0.
        cursor.execute(_SQL.format(scores=_SCORE * len(columns.attributes)), [array(tasks), *columns.attributes])
        rows = np.frombuffer(cursor.fetchone()[0] or b"", layout)
        # One row per annotation and ordered pair of responses that it ranks.
        cursor.execute(_RANKED, [array(tasks)])
        ranked = np.frombuffer(cursor.fetchone()[0] or b"", np.dtype([*_RANKED_FIELDS]))
    # A preference concerns the whole task, but stands in the row of every response: one row per annotation is enough.
    _, once = np.unique(rows["annotation"], return_index=True)
    preferring = rows[once][rows[once]["preference"] != _NO_PREFERENCE]
    rating = rows[rows["response"] != 0]
    segments, of_segments = _segments(tasks, columns)
    records = np.concatenate(
        [
            _of_ratings(rating, columns),
            _of_preferences(preferring, columns),
            _of_rankings(ranked, columns),
            of_segments,
        ]
    )
    submitted, content, annotation = (
        np.concatenate([part[name] for part in (rating, preferring, ranked, segments)])
        for name in ("submitted", "content", "annotation")
    )
    # lexsort takes its last key first. What the annotation says decides between submissions of one moment, as it does
    # for the consensus, so that the same ratings are always the first three.
    records = records[np.lexsort((annotation, content, submitted, records["response"], records["task"]))]
    samples = Samples.from_records(records)
    place = np.arange(len(records)) - samples.start[samples.number]
    records["flags"] |= np.where(place < 3, PairFlag.FIRST_THREE, 0).astype(np.uint8)
    return records


def _records(rows: Records, columns: PairColumns) -> Records:
    records = np.zeros(len(rows), columns.record)
    records["task"], records["annotator"] = rows["task"], rows["annotator"]
    records["week"] = (rows["submitted"] - FIRST_MONDAY) // WEEK
    records["flags"] = np.where(rows["kept"], PairFlag.KEPT, 0)
    records["values"] = -1
    return records


def _of_ratings(rows: Records, columns: PairColumns) -> Records:
    records = _records(rows, columns)
    records["response"] = rows["response"]
    for column, key in enumerate(columns.attributes):
        records["values"][:, column] = rows[f"score {key}"]
    records["values"][:, columns.safety] = rows["safe"]
    return records


def _of_preferences(rows: Records, columns: PairColumns) -> Records:
    records = _records(rows, columns)
    for strength, rank in _RANK.items():
        records["values"][rows["preference"] == strength, columns.preference] = rank
    records["values"][:, columns.neither] = rows["preference"] == NEITHER_VALID
    return records


def _of_rankings(rows: Records, columns: PairColumns) -> Records:
    records = _records(rows, columns)
    # A negative number for each ordered pair of responses. It need not be the same at the next read: a sample is told
    # apart by its task and this number, and a task's records are read and stored together.
    _, first = np.unique(rows["first"], return_inverse=True)
    ids, second = np.unique(rows["second"], return_inverse=True)
    records["response"] = -1 - first.astype(np.int64) * len(ids) - second
    records["values"][:, columns.ranking] = rows["order"]
    return records


def _segments(tasks: Sequence[int], columns: PairColumns) -> tuple[Records, Records]:
    """Reads a row and a record for each annotation and segment; none where the rubric has no aspects."""
    rated = list(_read_segments(tasks, columns.aspects)) if columns.aspects else []
    rows = np.zeros(sum(len(one.scores) for one in rated), np.dtype([*_FIELDS]))
    records = np.zeros(0, columns.record)
    if not rated:
        return rows, records
    sizes = [len(one.scores) for one in rated]
    for name in ("task", "annotation", "annotator", "submitted", "content", "kept"):
        rows[name] = np.repeat([vars(one)[name] for one in rated], sizes)
    records = _records(rows, columns)
    # A negative number for each segment of a response of this batch, far below those of ranked responses.
    _, response = np.unique([one.response for one in rated], return_inverse=True)
    segment = np.concatenate([np.arange(size) for size in sizes])
    records["response"] = _FIRST_SEGMENT - np.repeat(response, sizes) * max(sizes) - segment
    place = columns.attributes.index(columns.aspects[0])
    records["values"][:, place : place + len(columns.aspects)] = np.concatenate([one.scores for one in rated])
    return rows, records


# Segments ----------------------------------------------------------------------------------------------------


_SEGMENTS = f"""
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


def _read_segments(tasks: Sequence[int], aspects: Sequence[str]) -> Iterator[SegmentRatings]:
    """Yields the ratings of segments by these aspects. All of a response have the segments of its finest common cut."""
    with connection.cursor() as cursor:
        cursor.execute(_SEGMENTS, [list(tasks)])
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
        named = [dict(zip(rated_by, row, strict=True)) for row in json.loads(scores)]
        values = [[-1 if row.get(aspect) is None else row[aspect] for aspect in aspects] for row in named]
        if common:
            values = list(carried(values, ranges(json.loads(cut)) if cut else stored, onto=common))
        table = np.array(values, np.int8).reshape(-1, len(aspects))
        yield SegmentRatings(task, response, annotation, annotator, submitted, content, kept, table)
