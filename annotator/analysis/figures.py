"""Counts what the overview shows, and keeps the counts in one row per project.

A small project is counted again whenever somebody looks. A large one is left to the light worker, at most so often that
it spends a small part of its time on it; the page says how old the numbers are.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from time import perf_counter
from typing import Any

import numpy as np
from django.conf import settings
from django.db import connection
from django.db.models import Count, Sum
from django.utils.timezone import localdate

from annotator.analysis.agreement import reports
from annotator.infrastructure.background import messages
from annotator.infrastructure.db.statements import Statement
from annotator.models import Import, Project, ProjectFigures, Tally, Task
from annotator.models.agreement import Progress
from annotator.models.in_force import LABEL_IN_FORCE

RECOUNT_INLINE_BELOW = 10_000
"""A project with fewer annotations and tasks, together, is counted by the page that shows it."""
RECOUNT_PAUSE_FACTOR = 30
"""The light worker leaves a project alone for so many times as long as its last count took."""
LEAST_PAUSE = timedelta(seconds=30)
DAYS = 28
LABELS_READ = 20_000
_MOST_SHUFFLE = 2**31
Counts = dict[str, int]


@dataclass(frozen=True)
class Levels:
    """The labels of one attribute: how many have each level, and their mean and standard deviation."""

    counts: Sequence[int]
    mean: float | None
    deviation: float | None


@dataclass(frozen=True)
class Figures:
    """What was counted of a project. Days are those of the installation's time zone.

    `annotations` holds for each of the last DAYS days the annotations by the annotator's id. `imported` and `completed`
    hold how many tasks came and were complete on which day; a task is complete from the day of its last annotation.
    """

    as_of: datetime
    states: Counts
    wanted: int
    complete: int
    escalated: int
    dropped: int
    judged: int
    annotations: Mapping[date, Mapping[int, int]]
    imported: Mapping[date, int]
    completed: Mapping[date, int]
    exports: int
    skips: Counts
    preferences: Mapping[int, int]
    levels: Mapping[str, Levels]
    labels: int
    correlations: Mapping[str, Mapping[str, float | None]]
    kappas: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    weeks: Sequence[tuple[date, Mapping[str, float | None]]] = ()

    @property
    def tasks(self) -> int:
        return sum(number for state, number in self.states.items() if state != "gold")

    @property
    def rated_ever(self) -> bool:
        """Whether anybody has rated, as far as the figures reach."""
        return any(self.annotations.values()) or bool(self.completed)

    @property
    def rated(self) -> int:
        return sum(self.preferences.values())


def figures(project: Project, *, now: datetime) -> Figures | None:
    """Returns the figures, counted now or a while ago; None if they are being counted for the first time."""
    row = ProjectFigures.objects.filter(project=project).first()
    if row and row.as_of and row.as_of > now - timedelta(seconds=1):
        return _read(row.figures, as_of=row.as_of)
    rated = Tally.objects.filter(project=project).aggregate(n=Sum("done"))["n"] or 0
    imported = Import.objects.filter(project=project).aggregate(n=Sum("created"))["n"] or 0
    if rated + imported < RECOUNT_INLINE_BELOW:
        return refresh(project, now=now)
    if row is None or _is_old(row, now=now):
        _ask_for([project.pk], now=now)
    return _read(row.figures, as_of=row.as_of) if row and row.as_of else None


def _is_old(row: ProjectFigures, *, now: datetime) -> bool:
    pause = max(LEAST_PAUSE, timedelta(seconds=RECOUNT_PAUSE_FACTOR * row.took))
    return row.as_of is None or row.as_of < now - pause


def progress(projects: Iterable[Project], *, now: datetime) -> dict[int, Progress]:
    """Returns how many tasks each project has in each state, by the project's id.

    Of large projects these are the figures' counts; the light worker is asked to renew old ones.
    """
    by_number = {project.pk: project for project in projects}
    kept = {row.project_id: row for row in ProjectFigures.objects.filter(project__in=by_number)}
    counted = {number: Progress(row.as_of, **_work(row.figures["states"])) for number, row in kept.items() if row.as_of}
    known = {number: one for number, one in counted.items() if one.total >= RECOUNT_INLINE_BELOW}
    wanted = [number for number in known if _is_old(kept[number], now=now)]
    others: dict[int, Counts] = {number: {} for number in by_number if number not in known}
    rows = Task.objects.filter(project__in=others).order_by().values_list("project", "state")
    for number, state, tasks in rows.annotate(n=Count("pk")):
        others[number][state] = tasks
    for number, counts in others.items():
        known[number] = Progress(None, **_work(counts))
        wanted += [number] if known[number].total >= RECOUNT_INLINE_BELOW else []
    _ask_for(wanted, now=now)
    return known


def _work(counts: Counts) -> Counts:
    return {state: number for state, number in counts.items() if state != Task.State.GOLD}


def add_progress(projects: Iterable[Project], *, now: datetime) -> None:
    """Sets `progress` of each project."""
    projects = list(projects)
    known = progress(projects, now=now)
    for project in projects:
        project.progress = known[project.pk]


def refresh(project: Project, *, now: datetime) -> Figures:
    """Counts everything and stores it."""
    start = perf_counter()
    counted = _counted(project, now=now)
    row = ProjectFigures(project=project, figures=counted, as_of=now, took=perf_counter() - start)
    changed = ["figures", "as_of", "took"]
    ProjectFigures.objects.bulk_create([row], update_conflicts=True, unique_fields=["project"], update_fields=changed)
    return _read(counted, as_of=now)


# The condition makes one of two simultaneous looks the one that asks.
_ASK = Statement(
    """
    INSERT INTO annotator_projectfigures AS f (project_id, figures, took, wanted_at)
    SELECT project, '{}', 0, %(now)s FROM unnest(%(projects)s::bigint[]) AS project
    ON CONFLICT (project_id) DO UPDATE SET wanted_at = excluded.wanted_at
    WHERE f.wanted_at IS NULL OR f.wanted_at <= %(before)s RETURNING f.project_id
    """,
    prepared=False,
)


def _ask_for(projects: Sequence[int], *, now: datetime) -> None:
    """Asks the light worker for new figures of the projects, except where somebody has just done so."""
    if projects:
        for (number,) in _ASK.rows(projects=projects, now=now, before=now - LEAST_PAUSE):
            messages.send_on_commit("annotator.tasks.count_figures", [number])


# Counting --------------------------------------------------------------------------------------------------

_TASKS = """
SELECT t.state, count(*), sum(t.slots_wanted - t.done), count(*) FILTER (WHERE t.done > %(base)s),
    count(*) FILTER (WHERE c.drop_reason <> ''), count(c.id)
FROM annotator_task t LEFT JOIN annotator_consensus c ON c.task_id = t.id AND t.state = 'complete'
WHERE t.project_id = %(project)s GROUP BY t.state
"""
_DAYS = """
SELECT 'annotations', (a.submitted_at AT TIME ZONE %(zone)s)::date::text, s.annotator_id, count(*)
FROM annotator_task t JOIN annotator_assignment s ON s.task_id = t.id AND s.state = 'submitted'
JOIN annotator_annotation a ON a.assignment_id = s.id AND a.is_current
WHERE t.project_id = %(project)s AND t.state <> 'gold' AND a.origin <> 'imported' AND a.submitted_at >= %(since)s
GROUP BY 2, 3
UNION ALL
SELECT 'imported', (t.created_at AT TIME ZONE %(zone)s)::date::text, 0, count(*)
FROM annotator_task t WHERE t.project_id = %(project)s AND t.state <> 'gold' GROUP BY 2
UNION ALL
SELECT 'completed', day::text, 0, count(*) FROM (
    SELECT (max(a.submitted_at) AT TIME ZONE %(zone)s)::date AS day
    FROM annotator_task t JOIN annotator_assignment s ON s.task_id = t.id AND s.counts
    JOIN annotator_annotation a ON a.assignment_id = s.id AND a.is_current
    WHERE t.project_id = %(project)s AND t.state = 'complete' GROUP BY t.id
) last_annotations GROUP BY 2
"""
_CHOICES = """
SELECT 'skips', k.reason, 0, count(*)
FROM annotator_skip k JOIN annotator_assignment s ON s.id = k.assignment_id JOIN annotator_task t ON t.id = s.task_id
WHERE t.project_id = %(project)s GROUP BY 2
UNION ALL
SELECT 'preferences', a.preference::text, 0, count(*)
FROM annotator_task t JOIN annotator_assignment s ON s.task_id = t.id AND s.counts
JOIN annotator_annotation a ON a.assignment_id = s.id AND a.is_current
WHERE t.project_id = %(project)s AND t.state IN ('open', 'complete') AND a.preference IS NOT NULL GROUP BY 2
UNION ALL
SELECT 'exports', '', 0, count(*) FROM annotator_auditentry
WHERE project_id = %(project)s AND action = 'labels.exported'
"""
# `shuffle` is random, so that the tasks below a bound are a random sample.
_LABELS = f"""
SELECT l.scores FROM annotator_task t JOIN annotator_response r ON r.task_id = t.id
LEFT JOIN annotator_consensus c ON c.task_id = t.id, LATERAL ({LABEL_IN_FORCE}) l
WHERE t.project_id = %(project)s AND t.state IN ('open', 'complete') AND t.shuffle < %(bound)s LIMIT %(most)s
"""


def _counted(project: Project, *, now: datetime) -> dict[str, Any]:
    given: dict[str, Any] = {
        "project": project.pk,
        "base": project.base_annotators,
        "zone": settings.TIME_ZONE,
        "since": now - timedelta(days=DAYS),
    }
    with connection.cursor() as cursor:
        cursor.execute(_TASKS, given)
        tasks = cursor.fetchall()
        cursor.execute(f"{_DAYS} UNION ALL {_CHOICES}", given)
        rows = cursor.fetchall()
        complete = {state: row for state, *row in tasks}.get("complete", [0] * 5)
        share = min(1.0, LABELS_READ / max(int(complete[0]) * 2, 1))
        cursor.execute(_LABELS, given | {"bound": round(share * _MOST_SHUFFLE), "most": 2 * LABELS_READ})
        scores = [row[0] for row in cursor.fetchall()]
    by_state = {state: row for state, *row in tasks}
    counted: dict[str, Any] = {
        "states": {state: int(row[0]) for state, row in by_state.items()},
        "wanted": int(by_state.get("open", [0, 0])[1] or 0),
        "complete": int(complete[0]),
        "escalated": int(complete[2]),
        "dropped": int(complete[3]),
        "judged": int(complete[4]),
        "annotations": [[day, person, n] for kind, day, person, n in rows if kind == "annotations"],
        "exports": sum(n for kind, _key, _person, n in rows if kind == "exports"),
    }
    for wanted in ("imported", "completed", "skips", "preferences"):
        counted[wanted] = {key: n for kind, key, _person, n in rows if kind == wanted}
    kappas, weeks = reports.trend(project, now=now)
    counted["kappas"] = {
        selection: {key: estimate.kappa for key, estimate in by_attribute.items()}
        for selection, by_attribute in kappas.items()
    }
    counted["weeks"] = [[week.week.isoformat(), dict(week.kappa)] for week in weeks]
    return counted | _of_labels(project, scores)


def _of_labels(project: Project, scores: Sequence[Any]) -> dict[str, Any]:
    """Returns the distribution of each attribute's labels, and how the attributes go together."""
    rows = [json.loads(one) if isinstance(one, str | bytes) else one for one in scores]
    attributes = project.attributes_for()
    table = np.array(
        [[row.get(attribute.key, np.nan) for attribute in attributes] for row in rows], dtype=float
    ).reshape(len(rows), len(attributes))
    levels = {}
    for column, attribute in enumerate(attributes):
        known = table[:, column][~np.isnan(table[:, column])]
        counts = np.bincount(known.astype(int), minlength=len(attribute.levels))[: len(attribute.levels)]
        mean, deviation = (float(known.mean()), float(known.std())) if len(known) else (None, None)
        levels[attribute.key] = {"counts": counts.tolist(), "mean": mean, "deviation": deviation}
    correlations = {
        one.key: {other.key: _pearson(table[:, row], table[:, column]) for column, other in enumerate(attributes)}
        for row, one in enumerate(attributes)
    }
    return {"levels": levels, "correlations": correlations, "labels": len(rows)}


def _pearson(one: Any, other: Any) -> float | None:
    both = ~(np.isnan(one) | np.isnan(other))
    if both.sum() < 3 or not one[both].std() or not other[both].std():
        return None
    return float(np.corrcoef(one[both], other[both])[0, 1])


# Reading ---------------------------------------------------------------------------------------------------


def _read(stored: Mapping[str, Any], *, as_of: datetime) -> Figures:
    annotations: dict[date, dict[int, int]] = {}
    for day, person, number in stored["annotations"]:
        annotations.setdefault(date.fromisoformat(day), {})[person] = number
    return Figures(
        as_of=as_of,
        annotations=annotations,
        imported={date.fromisoformat(day): number for day, number in stored["imported"].items()},
        completed={date.fromisoformat(day): number for day, number in stored["completed"].items()},
        preferences={int(key): number for key, number in stored["preferences"].items()},
        levels={key: Levels(**values) for key, values in stored["levels"].items()},
        weeks=[(date.fromisoformat(monday), kappas) for monday, kappas in stored["weeks"]],
        **{
            name: stored[name]
            for name in (
                *("states", "wanted", "complete", "escalated", "dropped", "judged"),
                *("exports", "skips", "labels", "correlations", "kappas"),
            )
        },
    )


def last_days(as_of: datetime, *, days: int = DAYS) -> list[date]:
    """Returns the days up to the one of the count, oldest first."""
    today = localdate(as_of)
    return [today - timedelta(days=days - 1 - number) for number in range(days)]
