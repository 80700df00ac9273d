"""Annotations that lie far from what a model expects which has not learnt from their task: a reviewer looks at them.

A training run leaves its expectations of every labelled response in `expected.jsonl` (rewards/learning/cross_fit.py).
PostgreSQL lays them beside what was given, in a table that goes at the end; what is held of it here is a portion.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from django.db import connection, transaction

from annotator.background import failures
from annotator.db import locks
from annotator.models import Project, Task, UnlikelyAnnotation
from annotator.quality.work_arrays import copied
from annotator.review.unlikely_annotations import ask_for_review
from rewards.models import TrainingRun

EXPECTED = "expected.jsonl"
FEWEST_DEVIATIONS = 2.0
"""Standard deviations, as a root mean square over an annotation's scores, below which nothing is called unlikely."""
SHRINKAGE = 10
"""An annotator's own lean is taken off as far as so many scores and more show it."""
SHOWN = 4
"""Scores of an annotation that are given as evidence."""
_AT_ONCE = 500
"""Rows that are written, or lines that are read, together."""


Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Given:
    """What annotators gave, and what was expected: a row for each annotation and response, in the order of their ids.

    annotation, task, annotator, response: ids [rows]. given, expected: [rows, attributes], NaN where there is none.
    """

    attributes: tuple[str, ...]
    annotation: Array
    task: Array
    annotator: Array
    response: Array
    given: Array
    expected: Array

    def part(self, rows: Array | slice) -> "Given":
        arrays = {field.name: getattr(self, field.name)[rows] for field in fields(self) if field.name != "attributes"}
        return Given(self.attributes, **arrays)


Portions = Callable[[], Iterable[Given]]
"""The rows from their beginning, in portions that each hold whole annotations."""


@dataclass(frozen=True)
class Usual:
    """What is usual: annotators' ids in their order, their leans [annotators, attributes], the spread [attributes]."""

    annotators: Array
    leans: Array
    spread: Array


@dataclass(frozen=True)
class Unlikely:
    annotation: int
    task: int
    deviations: float
    evidence: list[dict[str, Any]]


def note_left(*, now: datetime) -> int:
    """Notes what the newest runs with a model have to say where nobody has: the message was lost, or who had it."""
    runs = {run.project: run for run in TrainingRun.objects.unnoted().select_related("project")}
    return failures.each_project("note_unlikely", runs, lambda project: note_once(runs[project], now=now))


def note_once(run: TrainingRun, *, now: datetime) -> int:
    """`note`, unless it is done or somebody is at it."""
    with locks.session_lock("note unlikely", run.project_id) as is_alone:
        left = is_alone and TrainingRun.objects.unnoted().filter(pk=run.pk).exists()
        return note(run, now=now) if left else 0


def note(run: TrainingRun, *, now: datetime) -> int:
    """Puts the most unlikely annotations of the run's project in the queue of its reviewers; returns how many.

    Earlier notes go, except those that a reviewer has answered: what was accepted once is not asked again.
    """
    project, count = run.project, 0
    with transaction.atomic():
        unlikely = _found(project, run.directory() / EXPECTED)
        UnlikelyAnnotation.objects.in_force().filter(task__project=project).delete()
        while rows := list(islice(unlikely, _AT_ONCE)):
            _write(rows, now=now)
            count += len(rows)
        ask_for_review(project.tasks.all())
        TrainingRun.objects.filter(pk=run.pk).update(unlikely_noted_at=now)
    return count


def _found(project: Project, path: Path) -> Iterator[Unlikely]:
    if not project.review_unlikely_percent or not path.is_file():
        return iter(())
    with _laid_beside(project, path) as portions:
        return most_unlikely(portions, percent=project.review_unlikely_percent)


def _write(unlikely: Iterable[Unlikely], *, now: datetime) -> None:
    UnlikelyAnnotation.objects.bulk_create(
        [
            UnlikelyAnnotation(
                annotation_id=rating.annotation,
                task_id=rating.task,
                unlikeliness=rating.deviations,
                evidence=rating.evidence,
                noted_at=now,
            )
            for rating in unlikely
        ],
        ignore_conflicts=True,
    )


def ask_again() -> int:
    """Asks for review wherever a task was settled anew since, and its annotation is as unlikely as before."""
    projects = Project.objects.filter(pk__in=UnlikelyAnnotation.objects.values("task__project"))
    return failures.each_project("ask_again_for_review", projects, lambda project: ask_for_review(project.tasks.all()))


# Reading ---------------------------------------------------------------------------------------------------

_EXPECTED = "CREATE TEMPORARY TABLE expected_scores (response bigint, scores real[]) ON COMMIT DROP"
_IDS = ("annotation", "task", "annotator", "response")
# Every score that counts, of complete tasks, and that something is expected of.
_GIVEN = """
CREATE TEMPORARY TABLE given_scores ON COMMIT DROP AS
SELECT a.id AS annotation, t.id AS task, s.annotator_id::bigint AS annotator, r.response_id AS response
    {given} {expected}
FROM annotator_task t
JOIN annotator_assignment s ON s.task_id = t.id AND s.counts
JOIN annotator_annotation a ON a.assignment_id = s.id AND a.is_current
JOIN annotator_rating r ON r.annotation_id = a.id
JOIN expected_scores e ON e.response = r.response_id
WHERE t.project_id = %s AND t.state = %s AND NOT t.adjudicated
"""
_COPY = "COPY (SELECT * FROM given_scores ORDER BY annotation, response) TO STDOUT (FORMAT binary)"


@contextmanager
def _laid_beside(project: Project, path: Path) -> Iterator[Portions]:
    """What was given beside what was expected, to be read as often as is wanted. In a transaction."""
    with connection.cursor() as cursor:
        cursor.execute(_EXPECTED)
        attributes = _expect(path)
        cursor.execute("ANALYZE expected_scores")
        given = [f", COALESCE((r.scores ->> %s)::float4, 'NaN') AS given_{place}" for place in range(len(attributes))]
        expected = [f", COALESCE(e.scores[{n + 1}], 'NaN') AS expected_{n}" for n in range(len(attributes))]
        sql = _GIVEN.format(given="".join(given), expected="".join(expected))
        cursor.execute(sql, [*attributes, project.pk, Task.State.COMPLETE])
        yield lambda: _whole_annotations(_portions(attributes))
        cursor.execute("DROP TABLE given_scores, expected_scores")


def _expect(path: Path) -> tuple[str, ...]:
    """Copies the file's rows as they are read; returns the attributes, in the order of their scores."""
    places: dict[str, int] = {}
    with path.open() as file, connection.cursor() as cursor, cursor.copy("COPY expected_scores FROM STDIN") as copy:
        while lines := list(islice(file, _AT_ONCE)):  # each write waits for the connection
            copy.write("".join(_expected_row(json.loads(line), places) for line in lines))
    return tuple(places)


def _expected_row(row: dict[str, Any], places: dict[str, int]) -> str:
    """A line of COPY; attributes that are new get the next places."""
    scores = row["scores"]
    for attribute in scores:
        places.setdefault(attribute, len(places))
    listed = ",".join(str(float(scores.get(attribute, math.nan))) for attribute in places)
    return f"{int(row['id'])}\t{{{listed}}}\n"


def _portions(attributes: tuple[str, ...]) -> Iterator[Given]:
    count = len(attributes)
    sent = np.dtype(
        [
            ("fields", ">i2"),
            *(part for name in _IDS for part in ((f"length of {name}", ">i4"), (name, ">i8"))),
            *((name, [("length", ">i4"), ("value", ">f4")], (count,)) for name in ("given", "expected")),
        ]
    )
    for block in copied(_COPY, []):
        rows = np.frombuffer(block, sent, len(block) // sent.itemsize)
        ids = {name: rows[name].astype(np.int64) for name in _IDS}
        scores = {name: rows[name]["value"].astype(np.float64) for name in ("given", "expected")}
        yield Given(attributes, **ids, **scores)


def _whole_annotations(portions: Iterable[Given]) -> Iterator[Given]:
    """The same rows, with none between two of one annotation's that ends a portion."""
    kept: Given | None = None
    for rows in portions:
        if kept is not None:
            rows = _joined([kept, rows])
        begin = int(np.searchsorted(rows.annotation, rows.annotation[-1])) if len(rows.annotation) else 0
        kept = rows.part(slice(begin, None))
        if begin:
            yield rows.part(slice(begin))
    if kept is not None and len(kept.annotation):
        yield kept


def _joined(parts: list[Given]) -> Given:
    names = [field.name for field in fields(Given) if field.name != "attributes"]
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return Given(parts[0].attributes, **arrays)


# What is unlikely ------------------------------------------------------------------------------------------


def most_unlikely(portions: Portions, *, percent: float) -> Iterator[Unlikely]:
    """The so many percent of annotations whose scores lie furthest off, in the order of their ids.

    Deviations are from what is expected and the annotator's own lean, by attribute, in standard deviations. The rows
    are read three times: for what is usual, for who is far from it, and for the scores of those.
    """
    usual = _usual(portions())
    chosen = _furthest(portions(), usual, percent=percent)
    parts = [rows.part(np.isin(rows.annotation, chosen)) for rows in portions()] if len(chosen) else []
    return _with_evidence(parts, usual)


def _with_evidence(parts: Iterable[Given], usual: Usual) -> Iterator[Unlikely]:
    for rows in (part for part in parts if len(part.annotation)):
        deviations = _deviations(rows, usual)
        begins = _begins(rows.annotation)
        overall = _overall(deviations, begins)
        for begin, end, far in zip(begins, np.append(begins[1:], len(rows.annotation)), overall, strict=True):
            yield _unlikely(rows.part(slice(begin, end)), deviations[begin:end], float(far))


def _usual(portions: Iterable[Given]) -> Usual:
    """From sums over each annotator's differences: how many there are, their sum, and the sum of their squares."""
    sums: dict[int, Array] = {}
    for rows in portions:
        off = rows.given - rows.expected
        known = np.isfinite(off)
        off = np.where(known, off, 0.0)
        annotators, place = np.unique(rows.annotator, return_inverse=True)
        of_portion = np.zeros((len(annotators), 3, off.shape[1]))
        np.add.at(of_portion, place, np.stack([known, off, off**2], axis=1))
        for annotator, portion_sums in zip(annotators.tolist(), of_portion, strict=True):
            sums[annotator] = sums[annotator] + portion_sums if annotator in sums else portion_sums
    if not sums:
        return Usual(np.empty(0, np.int64), np.empty((0, 0)), np.empty(0))
    annotators = np.array(sorted(sums))
    counts, totals, squares = np.stack([sums[person] for person in annotators.tolist()], axis=1)
    leans = totals / (counts + SHRINKAGE)
    left = (squares - 2 * leans * totals + counts * leans**2).sum(axis=0)
    spread = np.sqrt(left.clip(min=0) / counts.sum(axis=0).clip(min=1))
    return Usual(annotators, leans, spread.clip(min=1e-6))


def _deviations(rows: Given, usual: Usual) -> Array:
    """[rows, attributes]: from what was expected, less the annotator's lean; NaN where either is missing."""
    leans = usual.leans[np.searchsorted(usual.annotators, rows.annotator)]
    return np.asarray((rows.given - rows.expected - leans) / usual.spread)


def _begins(annotation: Array) -> Array:
    """The places where another annotation's rows begin."""
    return np.flatnonzero(np.diff(annotation, prepend=-1))


def _overall(deviations: Array, begins: Array) -> Array:
    """[annotations]: the root mean square of each one's deviations; NaN where it has none."""
    known = np.isfinite(deviations)
    squares = np.add.reduceat(np.where(known, deviations**2, 0.0).sum(axis=1), begins)
    counts = np.add.reduceat(known.sum(axis=1), begins)
    means: Array = np.divide(squares, counts, out=np.full(len(begins), np.nan), where=counts > 0)
    return np.asarray(np.sqrt(means))


def _furthest(portions: Iterable[Given], usual: Usual, *, percent: float) -> Array:
    """The ids of the annotations, in their order. As the mean square over all is 1, few are as far off as is asked."""
    number, ids, far = 0, [np.empty(0, np.int64)], [np.empty(0)]
    for rows in portions:
        begins = _begins(rows.annotation)
        overall = _overall(_deviations(rows, usual), begins)
        number += int(np.isfinite(overall).sum())
        candidates = np.flatnonzero(overall >= FEWEST_DEVIATIONS)
        ids.append(rows.annotation[begins[candidates]])
        far.append(overall[candidates])
    order = np.argsort(-np.concatenate(far), kind="stable")[: round(number * percent / 100)]
    return np.sort(np.concatenate(ids)[order])


def _unlikely(rows: Given, deviations: Array, overall: float) -> Unlikely:
    """rows: of one annotation."""
    cells = [(row, place) for row, place in np.argwhere(np.isfinite(deviations)).tolist()]
    widest = sorted(cells, key=lambda cell: -abs(deviations[cell]))[:SHOWN]
    evidence = [
        {
            "response": int(rows.response[cell[0]]),
            "attribute": rows.attributes[cell[1]],
            "given": int(rows.given[cell]),
            "expected": round(rows.expected[cell].item(), 2),
        }
        for cell in widest
        if abs(deviations[cell]) >= 1
    ]
    return Unlikely(int(rows.annotation[0]), int(rows.task[0]), overall, evidence)
