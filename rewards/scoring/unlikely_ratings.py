"""Finds annotations far from what a model expects that has not learnt from their task, for a reviewer to look at.

A training run leaves its expectations of every labelled response in `expected.jsonl` (rewards/learning/cross_fit.py).
PostgreSQL joins them with the scores that were given, in a temporary table; this process reads it in portions.
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

from annotator.analysis.quality.work_arrays import copied
from annotator.infrastructure.background import failures
from annotator.infrastructure.db import locks
from annotator.infrastructure.storage import store
from annotator.models import Project, Task, UnlikelyAnnotation
from annotator.stages.review.queue import ask_for_review
from rewards.models import TrainingRun

EXPECTED = "expected.jsonl"
FEWEST_DEVIATIONS = 2.0
"""The root mean square of an annotation's deviations, in standard deviations, below which it is never unlikely."""
SHRINKAGE = 10
"""An annotator's lean is shrunk as if this many scores without a lean were added, so that few scores show little."""
SHOWN = 4
"""The most scores of an annotation that are given as evidence."""
_AT_ONCE = 500
"""The number of rows that are written, or lines that are read, together."""


Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Given:
    """The scores that annotators gave and those expected: a row per annotation and response, in the order of their ids.

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
        """Returns some of the rows."""
        arrays = {field.name: getattr(self, field.name)[rows] for field in fields(self) if field.name != "attributes"}
        return Given(self.attributes, **arrays)


Portions = Callable[[], Iterable[Given]]
"""Reads the rows from their beginning, in portions that each hold whole annotations."""


@dataclass(frozen=True)
class Usual:
    """The usual differences from what is expected, over all annotations.

    annotators: sorted ids. leans [annotators, attributes]: each one's mean difference, shrunk. spread [attributes]: the
    standard deviation of what is left.
    """

    annotators: Array
    leans: Array
    spread: Array


@dataclass(frozen=True)
class Unlikely:
    """An annotation, how far it is from what was expected, and the scores that show it."""

    annotation: int
    task: int
    deviations: float
    evidence: list[dict[str, Any]]


def note_left(*, now: datetime) -> int:
    """Notes the unlikely annotations of the newest runs that lack them, as a message or its worker was lost."""
    runs = {run.project: run for run in TrainingRun.objects.unnoted().select_related("project")}
    return failures.each_project("note_unlikely", runs, lambda project: note_once(runs[project], now=now))


def note_once(run: TrainingRun, *, now: datetime) -> int:
    """Notes the run's unlikely annotations unless that is done, or another worker is doing it; returns how many."""
    # The message and the minute's sweep may come at once: two at work would delete each other's notes.
    with locks.session_lock("note unlikely", run.project_id) as is_alone:
        is_due = is_alone and TrainingRun.objects.unnoted().filter(pk=run.pk).exists()
        return note(run, now=now) if is_due else 0


def note(run: TrainingRun, *, now: datetime) -> int:
    """Puts the most unlikely annotations of the run's project into the queue of its reviewers; returns how many.

    Earlier notes are deleted, except those that a reviewer has answered: an accepted annotation is not asked about
    again.
    """
    project, count = run.project, 0
    expected = store.bring(run.directory() / EXPECTED)
    with transaction.atomic():
        unlikely = _read_unlikely(project, expected)
        UnlikelyAnnotation.objects.in_force().filter(task__project=project).delete()
        while rows := list(islice(unlikely, _AT_ONCE)):
            _write(rows, now=now)
            count += len(rows)
        ask_for_review(project.tasks.all())
        TrainingRun.objects.filter(pk=run.pk).update(unlikely_noted_at=now)
    return count


def _read_unlikely(project: Project, path: Path) -> Iterator[Unlikely]:
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
    """Asks for review again where a task was settled once more and its annotation is still unlikely."""
    projects = Project.objects.filter(pk__in=UnlikelyAnnotation.objects.values("task__project"))
    return failures.each_project("ask_again_for_review", projects, lambda project: ask_for_review(project.tasks.all()))


# Reading ---------------------------------------------------------------------------------------------------

_EXPECTED = "CREATE TEMPORARY TABLE expected_scores (response bigint, scores real[]) ON COMMIT DROP"
_IDS = ("annotation", "task", "annotator", "response")
# Every score that counts, in complete tasks, for which there is an expectation.
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
    """Yields a reader of the scores given and expected, which may be read several times. Needs a transaction."""
    with connection.cursor() as cursor:
        cursor.execute(_EXPECTED)
        attributes = _expect(path)
        # Autovacuum never sees temporary tables: without statistics the join would be planned for a handful of rows.
        cursor.execute("ANALYZE expected_scores")
        given_columns = [
            f", COALESCE((r.scores ->> %s)::float4, 'NaN') AS given_{place}" for place in range(len(attributes))
        ]
        expected_columns = [f", COALESCE(e.scores[{n + 1}], 'NaN') AS expected_{n}" for n in range(len(attributes))]
        sql = _GIVEN.format(given="".join(given_columns), expected="".join(expected_columns))
        cursor.execute(sql, [*attributes, project.pk, Task.State.COMPLETE])
        yield lambda: _whole_annotations(_portions(attributes))
        cursor.execute("DROP TABLE given_scores, expected_scores")


def _expect(path: Path) -> tuple[str, ...]:
    """Copies the file's rows into PostgreSQL; returns the attributes in the order of their scores."""
    places: dict[str, int] = {}
    with path.open() as file, connection.cursor() as cursor, cursor.copy("COPY expected_scores FROM STDIN") as copy:
        while lines := list(islice(file, _AT_ONCE)):  # each write waits for the connection
            copy.write("".join(_expected_row(json.loads(line), places) for line in lines))
    return tuple(places)


def _expected_row(row: dict[str, Any], places: dict[str, int]) -> str:
    """Returns a line of COPY; attributes that are new get the next places."""
    # float() and int() let nothing but numbers through, so no value can end the line or the array.
    scores = row["scores"]
    for attribute in scores:
        places.setdefault(attribute, len(places))
    listed = ",".join(str(float(scores.get(attribute, math.nan))) for attribute in places)
    return f"{int(row['id'])}\t{{{listed}}}\n"


def _portions(attributes: tuple[str, ...]) -> Iterator[Given]:
    count = len(attributes)
    # A row as COPY sends it in binary: the number of fields, and before each field its length in bytes.
    row_format = np.dtype(
        [
            ("fields", ">i2"),
            *(part for name in _IDS for part in ((f"length of {name}", ">i4"), (name, ">i8"))),
            *((name, [("length", ">i4"), ("value", ">f4")], (count,)) for name in ("given", "expected")),
        ]
    )
    for block in copied(_COPY, []):
        rows = np.frombuffer(block, row_format, len(block) // row_format.itemsize)
        ids = {name: rows[name].astype(np.int64) for name in _IDS}
        scores = {name: rows[name]["value"].astype(np.float64) for name in ("given", "expected")}
        yield Given(attributes, **ids, **scores)


def _whole_annotations(portions: Iterable[Given]) -> Iterator[Given]:
    """Yields the same rows in portions that never divide the rows of one annotation."""
    kept: Given | None = None
    for rows in portions:
        if kept is not None:
            names = [field.name for field in fields(Given) if field.name != "attributes"]
            arrays = {name: np.concatenate([getattr(part, name) for part in (kept, rows)]) for name in names}
            rows = Given(kept.attributes, **arrays)
        begin = int(np.searchsorted(rows.annotation, rows.annotation[-1])) if len(rows.annotation) else 0
        kept = rows.part(slice(begin, None))
        if begin:
            yield rows.part(slice(begin))
    if kept is not None and len(kept.annotation):
        yield kept


# What is unlikely ------------------------------------------------------------------------------------------


def most_unlikely(portions: Portions, *, percent: float) -> Iterator[Unlikely]:
    """Yields the given percentage of annotations whose scores are furthest from what is expected, by their ids.

    A deviation is the difference from the expected score and the annotator's lean, by attribute, in standard
    deviations. The rows are read three times, to keep no more than a portion in memory: for what is usual, for who is
    far from it, and for the scores of those.
    """
    usual = _usual(portions())
    # The mean square over all deviations is 1, so few reach FEWEST_DEVIATIONS, and the candidates fit into memory.
    number, ids, far = 0, [np.empty(0, np.int64)], [np.empty(0)]
    for rows in portions():
        begins = _begins(rows.annotation)
        overall = _overall(_deviations(rows, usual), begins)
        number += int(np.isfinite(overall).sum())
        candidates = np.flatnonzero(overall >= FEWEST_DEVIATIONS)
        ids.append(rows.annotation[begins[candidates]])
        far.append(overall[candidates])
    order = np.argsort(-np.concatenate(far), kind="stable")[: round(number * percent / 100)]
    chosen = np.sort(np.concatenate(ids)[order])
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
    # Three sums for each annotator, [3, attributes], are enough for leans and spread: the number of differences, their
    # sum, and the sum of their squares.
    sums: dict[int, Array] = {}
    for rows in portions:
        difference = rows.given - rows.expected
        known = np.isfinite(difference)
        difference = np.where(known, difference, 0.0)
        annotators, place = np.unique(rows.annotator, return_inverse=True)
        of_portion = np.zeros((len(annotators), 3, difference.shape[1]))
        # add.at adds once for every row; with plain indexing one row of each annotator would count.
        np.add.at(of_portion, place, np.stack([known, difference, difference**2], axis=1))
        for annotator, portion_sums in zip(annotators.tolist(), of_portion, strict=True):
            sums[annotator] = sums[annotator] + portion_sums if annotator in sums else portion_sums
    if not sums:
        return Usual(np.empty(0, np.int64), np.empty((0, 0)), np.empty(0))
    annotators = np.array(sorted(sums))
    counts, totals, squares = np.stack([sums[person] for person in annotators.tolist()], axis=1)
    leans = totals / (counts + SHRINKAGE)
    # [attributes]: the sum of (difference - lean)^2, multiplied out; rounding may take it below 0.
    residual = (squares - 2 * leans * totals + counts * leans**2).sum(axis=0)
    spread = np.sqrt(residual.clip(min=0) / counts.sum(axis=0).clip(min=1))
    # Where everybody gives what is expected there is no spread to divide by.
    return Usual(annotators, leans, spread.clip(min=1e-6))


def _deviations(rows: Given, usual: Usual) -> Array:
    """[rows, attributes]: the difference from the expected score less the annotator's lean, in spreads, or NaN."""
    leans = usual.leans[np.searchsorted(usual.annotators, rows.annotator)]
    return np.asarray((rows.given - rows.expected - leans) / usual.spread)


def _begins(annotation: Array) -> Array:
    """[annotations]: the places where another annotation's rows begin."""
    return np.flatnonzero(np.diff(annotation, prepend=-1))


def _overall(deviations: Array, begins: Array) -> Array:
    """[annotations]: the root mean square of each annotation's deviations; NaN where it has none."""
    known = np.isfinite(deviations)
    squares = np.add.reduceat(np.where(known, deviations**2, 0.0).sum(axis=1), begins)
    counts = np.add.reduceat(known.sum(axis=1), begins)
    means: Array = np.divide(squares, counts, out=np.full(len(begins), np.nan), where=counts > 0)
    return np.asarray(np.sqrt(means))


def _unlikely(rows: Given, deviations: Array, overall: float) -> Unlikely:
    """Describes one annotation, whose rows these are, by its largest deviations."""
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
