"""One annotator's work for those who look after them: how much, how fast, and how far it agrees with the others'."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from annotator.infrastructure.db.statements import array
from annotator.models import Assignment, Project, User
from annotator.statistics.measures import FEWEST_TASKS, NO_VARIANCE, draws, ends_of, known

DAYS, WEEKS = 28, 26
COUNTED = 5_000
"""The latest assignments that are counted by day and week."""
LOOKED_AT, LATEST_TASKS = 2_000, 400
"""Agreement is measured on so many of the latest tasks in the project, among so many assignments in all projects."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Volume:
    """Tasks rated by day and by week, oldest first and without gaps, and the median seconds for one by week."""

    days: Sequence[tuple[date, int]]
    weeks: Sequence[tuple[date, int]]
    seconds: Sequence[float | None]
    is_partial: bool
    """Whether somebody has taken more tasks than are counted, so that the earliest weeks lack some."""


# LATERAL and its LIMIT: a plain join would be planned as if most annotations were wanted, and read all of them.
_VOLUME = """
SELECT date_trunc('day', a.submitted_at)::date AS day, date_trunc('week', a.submitted_at)::date AS week, count(*),
    percentile_cont(0.5) WITHIN GROUP (ORDER BY a.active_seconds)
FROM annotator_assignment s
JOIN annotator_task t ON t.id = s.task_id AND t.project_id = %s
CROSS JOIN LATERAL (
    SELECT submitted_at, active_seconds FROM annotator_annotation
    WHERE assignment_id = s.id AND revision = 1 AND submitted_at >= %s LIMIT 1
) a
WHERE s.id = ANY(%s::bigint[])
GROUP BY GROUPING SETS ((day), (week))
"""


def latest_assignments(user: User) -> list[int]:
    """Returns the ids of the user's latest assignments in all projects, the newest first.

    They are chosen before anything is joined to them, as somebody may have hundreds of thousands.
    """
    return list(Assignment.objects.filter(annotator=user).order_by("-pk").values_list("pk", flat=True)[:COUNTED])


def volume(project: Project, assignments: Sequence[int], *, now: datetime) -> Volume:
    """Counts the annotations of these assignments that are the project's; a revision is not counted again."""
    today = now.date()
    monday = today - timedelta(days=today.weekday())
    weeks = [monday - timedelta(weeks=number) for number in reversed(range(WEEKS))]
    days = [today - timedelta(days=number) for number in reversed(range(DAYS))]
    with connection.cursor() as cursor:
        cursor.execute(_VOLUME, [project.pk, weeks[0], array(assignments)])
        rows = cursor.fetchall()
    by_day = {day: count for day, _week, count, _seconds in rows if day}
    by_week = {week: (count, seconds) for _day, week, count, seconds in rows if week}
    return Volume(
        days=[(day, by_day.get(day, 0)) for day in days],
        weeks=[(week, by_week.get(week, (0, None))[0]) for week in weeks],
        seconds=[by_week.get(week, (0, None))[1] for week in weeks],
        is_partial=len(assignments) == COUNTED,
    )


@dataclass(frozen=True)
class Interval:
    """A value with its 95 % interval: where it would lie for other tasks of the same kind. All None: unknown."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class PersonWithOthers:
    """Agreement by attribute over `tasks` that others have rated as well.

    `kappa` is quadratic-weighted against every other rating of the same response, `bias` the own rating minus the
    others', in levels.
    """

    tasks: int
    kappa: Mapping[str, Interval]
    bias: Mapping[str, Interval]


# The moments of a task for an attribute: pairs, squared differences, own and others' ratings and their squares.
_MOMENTS = """
WITH mine AS (
    SELECT s.task_id, a.id FROM annotator_assignment s
    JOIN annotator_task t ON t.id = s.task_id AND t.project_id = %s AND t.state IN ('open', 'complete')
    JOIN annotator_annotation a ON a.assignment_id = s.id AND a.is_current
    WHERE s.id = ANY(%s::bigint[]) AND s.state = 'submitted' AND s.counts
    ORDER BY s.id DESC LIMIT %s
), pair AS (
    SELECT mine.task_id, score.key, score.value::float8 AS x, (theirs.scores ->> score.key)::float8 AS y
    FROM mine
    JOIN annotator_rating own ON own.annotation_id = mine.id
    JOIN annotator_rating theirs ON theirs.response_id = own.response_id AND theirs.annotation_id <> mine.id
    JOIN annotator_annotation b ON b.id = theirs.annotation_id AND b.is_current
    JOIN annotator_assignment peer ON peer.id = b.assignment_id AND peer.state = 'submitted' AND peer.counts
    CROSS JOIN LATERAL jsonb_each_text(own.scores) AS score
    WHERE theirs.scores ? score.key
)
SELECT key, task_id, count(*), sum((x - y) ^ 2), sum(x), sum(y), sum(x ^ 2), sum(y ^ 2) FROM pair GROUP BY key, task_id
"""


def with_others(project: Project, assignments: Sequence[int]) -> PersonWithOthers:
    """Returns how far somebody agrees with the others, on the latest of these assignments' tasks in the project."""
    with connection.cursor() as cursor:
        cursor.execute(_MOMENTS, [project.pk, array(assignments[:LOOKED_AT]), LATEST_TASKS])
        rows = cursor.fetchall()
    keys = project.attribute_keys()
    tasks = {task: place for place, task in enumerate(sorted({task for _key, task, *_moments in rows}))}
    sums = np.zeros((len(tasks), len(keys), 6))
    columns = {key: column for column, key in enumerate(keys)}
    for key, task, *moments in rows:
        if key in columns:
            sums[tasks[task], columns[key]] = moments
    if len(tasks) < FEWEST_TASKS:
        unknown = dict.fromkeys(keys, Interval())
        return PersonWithOthers(len(tasks), unknown, unknown)
    # Whole tasks are drawn, as the ratings of one task depend on each other.
    drawn = np.tensordot(draws(len(tasks)), sums, 1)
    whole = sums.sum(0)
    return PersonWithOthers(
        len(tasks),
        kappa=_by_key(keys, _kappa(whole), _kappa(drawn)),
        bias=_by_key(keys, _bias(whole), _bias(drawn)),
    )


def _kappa(sums: Floats) -> Floats:
    """Returns 1 - E (x - y)^2 / (Var x + Var y + (E x - E y)^2), NaN where all ratings are the same."""
    pairs = np.where(sums[..., 0] > 0, sums[..., 0], np.nan)
    difference, own, others, own_square, others_square = (sums[..., place] / pairs for place in range(1, 6))
    by_chance = own_square - own**2 + others_square - others**2 + (own - others) ** 2
    return np.asarray(1 - difference / np.where(by_chance > NO_VARIANCE, by_chance, np.nan))


def _bias(sums: Floats) -> Floats:
    pairs = np.where(sums[..., 0] > 0, sums[..., 0], np.nan)
    return np.asarray((sums[..., 2] - sums[..., 3]) / pairs)


def _by_key(keys: Sequence[str], values: Floats, drawn: Floats) -> dict[str, Interval]:
    """Returns each attribute's value with its interval; None where the draws say nothing."""
    intervals = {}
    for column, key in enumerate(keys):
        if np.isnan(values[column]):
            intervals[key] = Interval()
            continue
        intervals[key] = Interval(float(values[column]), *map(known, ends_of(drawn[:, column])))
    return intervals
