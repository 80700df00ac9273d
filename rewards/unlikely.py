"""Annotations that lie far from what a model expects which has not learnt from their task: a reviewer looks at them.

A training run leaves its expectations of every labelled response in `expected.jsonl` (rewards/learning/expected.py).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from django.db import transaction

from annotator import background
from annotator.models import Annotation, Project, Rating, Task, UnlikelyAnnotation
from annotator.review.unlikely import ask_for_review
from rewards.models import TrainingRun

EXPECTED = "expected.jsonl"
FEWEST_DEVIATIONS = 2.0
"""Standard deviations, as a root mean square over an annotation's scores, below which nothing is called unlikely."""
SHRINKAGE = 10
"""An annotator's own lean is taken off as far as so many scores and more show it."""
SHOWN = 4
"""Scores of an annotation that are given as evidence."""


@dataclass(frozen=True)
class Given:
    """One score, and what was expected."""

    annotation: int
    task: int
    annotator: int
    response: int
    attribute: str
    given: int
    expected: float


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
    rows = list(_given(project, _expected(path))) if project.review_unlikely_percent and path.is_file() else []
    found = most_unlikely(rows, percent=project.review_unlikely_percent)
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
    projects = Project.objects.filter(pk__in=UnlikelyAnnotation.objects.values("task__project"))
    return background.each_project("ask_again_for_review", projects, lambda each: ask_for_review(each.tasks.all()))


def _expected(path: Path) -> dict[int, Mapping[str, float]]:
    with path.open() as file:
        rows = [json.loads(line) for line in file]
    return {int(row["id"]): row["scores"] for row in rows}


def _given(project: Project, expected: Mapping[int, Mapping[str, float]]) -> Iterator[Given]:
    """Every score that counts, of complete tasks, and that something is expected of."""
    counting = Annotation.objects.counting().for_project(project.pk)
    settled = counting.filter(assignment__task__state=Task.State.COMPLETE, assignment__task__adjudicated=False)
    names = ("annotation", "annotation__assignment__task", "annotation__assignment__annotator", "response", "scores")
    ratings = Rating.objects.filter(annotation__in=settled, response__in=list(expected)).values_list(*names)
    for annotation, task, annotator, response, scores in ratings.order_by("annotation", "response").iterator():
        for attribute, value in expected[response].items():
            if attribute in scores:
                yield Given(annotation, task, annotator, response, attribute, scores[attribute], value)


def most_unlikely(rows: list[Given], *, percent: float) -> list[Unlikely]:
    """The so many percent of annotations whose scores lie furthest off, the furthest first.

    Deviations are from what is expected and the annotator's own lean, by attribute, in standard deviations.
    """
    if not rows:
        return []
    off = np.array([row.given - row.expected for row in rows], dtype=np.float64)
    attributes = np.unique([row.attribute for row in rows], return_inverse=True)[1]
    leans = np.unique([f"{row.annotator} {row.attribute}" for row in rows], return_inverse=True)[1]
    off -= (np.bincount(leans, off) / (np.bincount(leans) + SHRINKAGE))[leans]
    spread = np.sqrt(np.bincount(attributes, off**2) / np.bincount(attributes))
    deviations = off / np.maximum(spread[attributes], 1e-6)
    annotations, owner = np.unique([row.annotation for row in rows], return_inverse=True)
    overall = np.sqrt(np.bincount(owner, deviations**2) / np.bincount(owner))
    chosen = np.argsort(-overall, kind="stable")[: round(len(annotations) * percent / 100)]
    return [
        _unlikely([(rows[i], deviations[i]) for i in np.flatnonzero(owner == place)], float(overall[place]))
        for place in chosen
        if overall[place] >= FEWEST_DEVIATIONS
    ]


def _unlikely(scores: list[tuple[Given, float]], deviations: float) -> Unlikely:
    widest = sorted(scores, key=lambda each: -abs(each[1]))[:SHOWN]
    first = scores[0][0]
    evidence = [
        {
            "response": row.response,
            "attribute": row.attribute,
            "given": row.given,
            "expected": round(row.expected, 2),
        }
        for row, far in widest
        if abs(far) >= 1
    ]
    return Unlikely(first.annotation, first.task, deviations, evidence)
