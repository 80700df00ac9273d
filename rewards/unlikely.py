"""Annotations that lie far from what a model expects which has not learnt from their task: a reviewer looks at them.

A training run leaves its expectations of every labelled response in `expected.jsonl` (rewards/learning/expected.py).
"""

import json
import math
from array import array
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from django.db import transaction

from annotator.models import Project, Task, UnlikelyAnnotation
from annotator.quality.reading import copied
from annotator.review.unlikely import ask_for_review
from rewards.models import TrainingRun

EXPECTED = "expected.jsonl"
FEWEST_DEVIATIONS = 2.0
"""Standard deviations, as a root mean square over an annotation's scores, below which nothing is called unlikely."""
SHRINKAGE = 10
"""An annotator's own lean is taken off as far as so many scores and more show it."""
SHOWN = 4
"""Scores of an annotation that are given as evidence."""


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


@dataclass(frozen=True)
class Expected:
    """What a run expects: response ids in their order, and by them [responses, attributes], NaN where it is nothing."""

    attributes: tuple[str, ...]
    responses: Array
    values: Array


@dataclass(frozen=True)
class Unlikely:
    annotation: int
    task: int
    deviations: float
    evidence: list[dict[str, Any]]


def note(run: TrainingRun, *, now: datetime) -> int:
    """Puts the most unlikely annotations of the run's project in the queue of its reviewers; returns how many.

    Earlier notes go, except those that a reviewer has answered: what was accepted once is not asked again.
    """
    project = run.project
    path = run.directory() / EXPECTED
    percent = project.review_unlikely_percent
    expected = _expected(path) if percent and path.is_file() else None
    found = most_unlikely(_given(project, expected), percent=percent) if expected and expected.attributes else []
    with transaction.atomic():
        UnlikelyAnnotation.objects.in_force().filter(task__project=project).delete()
        UnlikelyAnnotation.objects.bulk_create(
            [
                UnlikelyAnnotation(
                    annotation_id=each.annotation,
                    task_id=each.task,
                    unlikeliness=each.deviations,
                    evidence=each.evidence,
                    noted_at=now,
                )
                for each in found
            ],
            ignore_conflicts=True,
        )
        ask_for_review(project.tasks.all())
    return len(found)


def ask_again() -> int:
    """Asks for review wherever a task was settled anew since, and its annotation is as unlikely as before."""
    projects = UnlikelyAnnotation.objects.values("task__project")
    return ask_for_review(Task.objects.filter(project__in=projects))


def _expected(path: Path) -> Expected:
    """Line by line: as Python's objects the rows would take twenty times the room."""
    places: dict[str, int] = {}
    responses, values = array("q"), [array("d")]
    with path.open() as file:
        for number, line in enumerate(file):
            row = json.loads(line)
            responses.append(int(row["id"]))
            for attribute, value in row["scores"].items():
                place = places.setdefault(attribute, len(places))
                if place == len(values):
                    values.append(array("d"))
                values[place].extend([math.nan] * (number - len(values[place])))
                values[place].append(value)
    table = np.full((len(responses), len(places)), np.nan)
    for place in places.values():
        table[: len(values[place]), place] = values[place]
    order = np.argsort(np.asarray(responses, dtype=np.int64), kind="stable")
    return Expected(tuple(places), np.asarray(responses, dtype=np.int64)[order], table[order])


_SQL = """
COPY (
    SELECT a.id, t.id, s.annotator_id, r.response_id {scores}
    FROM annotator_task t
    JOIN annotator_assignment s ON s.task_id = t.id AND s.counts
    JOIN annotator_annotation a ON a.assignment_id = s.id AND a.is_current
    JOIN annotator_rating r ON r.annotation_id = a.id
    WHERE t.project_id = %s AND t.state = %s AND NOT t.adjudicated
) TO STDOUT (FORMAT binary)
"""
_SCORE = ", COALESCE((r.scores ->> %s)::int2, -1::int2)"
_IDS = ("annotation", "task", "annotator", "response")


def _given(project: Project, expected: Expected) -> Given:
    """Every score that counts, of complete tasks, and that something is expected of."""
    count = len(expected.attributes)
    ids = [("fields", ">i2"), *(part for name in _IDS for part in ((f"length of {name}", ">i4"), (name, ">i8")))]
    sent = np.dtype([*ids, ("scores", [("length", ">i4"), ("value", ">i2")], (count,))])
    kept = np.dtype([*((name, "i8") for name in _IDS), ("place", "i4"), ("scores", "i1", (count,))])
    found, known_ids = [np.empty(0, kept)], np.append(expected.responses, -1)
    for block in copied(_SQL.format(scores=_SCORE * count), [*expected.attributes, project.pk, Task.State.COMPLETE]):
        chunk = np.frombuffer(block, sent, len(block) // sent.itemsize)
        place = np.searchsorted(expected.responses, chunk["response"])
        known = np.flatnonzero(known_ids[place] == chunk["response"])
        rows = np.empty(len(known), kept)
        for name in _IDS:
            rows[name] = chunk[name][known]
        rows["place"], rows["scores"] = place[known], chunk["scores"]["value"][known]
        found.append(rows)
    rows = np.concatenate(found)
    found.clear()
    rows = rows[np.lexsort((rows["response"], rows["annotation"]))]
    given = np.where(rows["scores"] < 0, np.float32(np.nan), rows["scores"])
    columns = {name: rows[name].copy() for name in _IDS}
    return Given(expected.attributes, **columns, given=given, expected=expected.values[rows["place"]])


def most_unlikely(rows: Given, *, percent: float) -> list[Unlikely]:
    """The so many percent of annotations whose scores lie furthest off, the furthest first.

    Deviations are from what is expected and the annotator's own lean, by attribute, in standard deviations.
    """
    deviations = _deviations(rows)
    known = np.isfinite(deviations)
    some = np.flatnonzero(known.any(axis=1))
    annotations, begins = np.unique(rows.annotation[some], return_index=True)
    if not len(some):
        return []
    owner = np.searchsorted(annotations, rows.annotation).clip(max=len(annotations) - 1)
    squares = np.bincount(np.repeat(owner, known.shape[1]), np.where(known, deviations**2, 0.0).ravel())
    counts = np.bincount(owner, known.sum(axis=1))
    overall = np.sqrt(squares / counts)
    chosen = np.argsort(-overall, kind="stable")[: round(len(annotations) * percent / 100)]
    ends = np.append(begins[1:], len(some))
    return [
        _unlikely(rows, deviations, some[begins[place] : ends[place]], float(overall[place]))
        for place in chosen
        if overall[place] >= FEWEST_DEVIATIONS
    ]


def _deviations(rows: Given) -> Array:
    """[rows, attributes]: from what was expected, less the annotator's lean; NaN where either is missing."""
    off = rows.given - rows.expected
    annotators = np.unique(rows.annotator, return_inverse=True)[1]
    for column in off.T:
        known = np.isfinite(column)
        if not known.any():
            continue
        values, leans = column[known], annotators[known]
        values -= (np.bincount(leans, values) / (np.bincount(leans) + SHRINKAGE))[leans]
        spread = np.sqrt(np.bincount(np.zeros(len(values), np.intp), values**2)[0] / len(values))
        column[known] = values / max(spread, 1e-6)
    return off


def _unlikely(rows: Given, deviations: Array, of: Array, overall: float) -> Unlikely:
    """of: the places of the annotation's rows."""
    cells = [(row, place) for row in of.tolist() for place in np.flatnonzero(np.isfinite(deviations[row])).tolist()]
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
    return Unlikely(int(rows.annotation[of[0]]), int(rows.task[of[0]]), overall, evidence)
