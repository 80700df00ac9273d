"""Shows annotators their own work: the day, when a break may help, and complete tasks on which others differed.

Nobody else sees it. Of the others only their mean is told, never a single rating, and only once a task is complete.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import log
from statistics import median, quantiles
from string import ascii_uppercase

from django.db import connection

from annotator.analysis.quality.own_work import PACE_OVER, TIMED_AMONG
from annotator.infrastructure.db.statements import array
from annotator.models import Annotation, Project

LATELY = 20
"""The latest timed tasks of the day, whose scatter is compared with the usual one."""
MUCH_SCATTER = 1.8
"""A wider scatter than this many times the usual suggests a break; a steady pace passes it about twice in a hundred."""
RECAP_DAYS, MOST_RECAPPED = 7, 5
FEWEST_OTHERS = 2
"""Of one other rater the mean would be that person's rating."""


@dataclass(frozen=True)
class Day:
    """The time spent on today's tasks, the median seconds for one, and the median of earlier days.

    `wants_break` says that the latest of today's tasks took times that scatter far more than they usually do.
    """

    worked: timedelta
    pace: float | None
    usual: float | None
    wants_break: bool


@dataclass(frozen=True)
class SeenOtherwise:
    """A response that others rated otherwise: the levels, one's own and the mean of theirs, and how many they are."""

    assignment: int
    prompt: str
    letter: str
    attribute: str
    own: int
    others: float
    raters: int


def day(project: Project, latest: Sequence[int], *, now: datetime) -> Day:
    """Sums up somebody's work of today, by their latest assignments; a revision is no new work.

    The usual pace is that of the last PACE_OVER timed tasks before today.
    """
    rows = Annotation.objects.for_project(project.pk).filter(assignment__in=latest[:TIMED_AMONG], revision=1)
    # Sorted here: for the newest few of them PostgreSQL would look through everybody's annotations.
    done = sorted(rows.order_by().values_list("pk", "submitted_at", "active_seconds"))
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    timed = [seconds for _pk, at, seconds in done if at >= midnight and seconds]
    before = [seconds for _pk, at, seconds in done if at < midnight and seconds][-PACE_OVER:]
    return Day(
        worked=timedelta(seconds=sum(timed)),
        pace=median(timed) if timed else None,
        usual=median(before) if before else None,
        wants_break=scatters(timed, usual=before),
    )


def scatters(seconds: Sequence[float], *, usual: Sequence[float]) -> bool:
    """Returns whether the LATELY latest times scatter MUCH_SCATTER times as widely as the usual ones.

    Scatter is the distance between the quartiles of the logarithms, as times are skewed: twice as slow and twice as
    fast are equally far off. Fewer than LATELY times of either kind say nothing.
    """
    if min(len(seconds), len(usual)) < LATELY:
        return False
    lately, before = _quartile_range(seconds[-LATELY:]), _quartile_range(usual)
    return before > 0 and lately > MUCH_SCATTER * before


def _quartile_range(seconds: Sequence[float]) -> float:
    first, _middle, third = quantiles(map(log, seconds), n=4)
    return third - first


# LATERAL and its LIMIT: a plain join would be planned as if most annotations were wanted, and read all of them.
_DIFFERENCES = """
WITH mine AS (
    SELECT s.id AS assignment, s.response_order, a.id AS annotation,
        coalesce(nullif(btrim(left(t.conversation -> -1 ->> 'content', 160)), ''), t.external_id) AS prompt
    FROM annotator_assignment s
    JOIN annotator_task t ON t.id = s.task_id AND t.project_id = %s AND t.state = 'complete'
    CROSS JOIN LATERAL (
        SELECT id FROM annotator_annotation WHERE assignment_id = s.id AND is_current AND submitted_at >= %s LIMIT 1
    ) a
    WHERE s.id = ANY(%s::bigint[]) AND s.state = 'submitted'
)
SELECT DISTINCT ON (mine.assignment) mine.assignment, mine.prompt,
    array_position(mine.response_order, p.position) AS place, score.key, score.value::int, avg(other.level), count(*)
FROM mine
JOIN annotator_rating r ON r.annotation_id = mine.annotation
JOIN annotator_response p ON p.id = r.response_id
CROSS JOIN LATERAL jsonb_each_text(r.scores) AS score
CROSS JOIN LATERAL (
    SELECT (q.scores ->> score.key)::float8 AS level
    FROM annotator_rating q
    JOIN annotator_annotation b ON b.id = q.annotation_id AND b.is_current AND b.id <> mine.annotation
    JOIN annotator_assignment peer ON peer.id = b.assignment_id AND peer.counts
    WHERE q.response_id = r.response_id AND q.scores ? score.key
) other
WHERE score.key = ANY(string_to_array(%s, ','))
GROUP BY mine.assignment, mine.prompt, place, score.key, score.value
HAVING count(*) >= %s AND abs(avg(other.level) - score.value::int) >= 1
ORDER BY mine.assignment, abs(avg(other.level) - score.value::int) DESC, place, score.key
"""


def where_others_differed(project: Project, latest: Sequence[int], *, now: datetime) -> list[SeenOtherwise]:
    """Returns the widest difference of each task of the last RECAP_DAYS days, a level or more, the widest first.

    Only of complete tasks, whose ratings can be changed no more unless a decision opens them again, and of
    FEWEST_OTHERS other raters or more.
    """
    names = {attribute.key: attribute.shown_name for attribute in project.attributes_for()}
    since = now - timedelta(days=RECAP_DAYS)
    with connection.cursor() as cursor:
        chosen = array(latest[:TIMED_AMONG])
        cursor.execute(_DIFFERENCES, [project.pk, since, chosen, ",".join(names), FEWEST_OTHERS])
        found = [
            SeenOtherwise(assignment, prompt, ascii_uppercase[place - 1], names[key], own + 1, others + 1, raters)
            for assignment, prompt, place, key, own, others, raters in cursor.fetchall()
        ]
    return sorted(found, key=lambda one: (abs(one.own - one.others), one.assignment), reverse=True)[:MOST_RECAPPED]
