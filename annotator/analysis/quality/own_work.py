"""Tells annotators about their own work: how much, how fast, and how far they agree with their peers.

Peers stay anonymous: agreement covers complete tasks only, pools all others, and is withheld below a minimum.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from statistics import median

from django.db import connection

from annotator.analysis.quality import person_work
from annotator.infrastructure.db.statements import array
from annotator.models import Annotation, Project, User
from annotator.statistics.measures import kappa_of_means

FEWEST_SHARED = 10
"""Responses that must be shared with others before an agreement is shown: fewer would reveal the others' scores."""
WEEKS = 8
DAYS = 14
PACE_OVER, TIMED_AMONG = 50, 500
"""The timed tasks whose median is shown, and the latest assignments among which they are looked for."""
MOST_COMPARED = 1_000
"""The most tasks of one annotator that are compared with those of others while somebody waits for the page."""


@dataclass(frozen=True)
class Amount:
    """The annotations in all and by day, oldest first and without gaps."""

    total: int
    days: Sequence[tuple[date, int]]

    @property
    def today(self) -> int:
        return self.days[-1][1]

    @property
    def most(self) -> int:
        return max(count for _, count in self.days)


def amount(user: User, project: Project, *, latest: Sequence[int], now: datetime) -> Amount:
    """Counts the user's annotations in the project; a revision is not counted again.

    `latest` are the ids of the user's latest assignments, among which those of the last days are.
    """
    volume = person_work.volume(project, latest, now=now)
    return Amount(
        total=sum(user.tallies.filter(project=project).values_list("done", flat=True)),
        days=volume.days[-DAYS:],
    )


def median_seconds(project: Project, latest: Sequence[int]) -> float | None:
    """Returns the median time of somebody's latest timed tasks, by their latest assignments; None if none was timed."""
    mine = Annotation.objects.for_project(project.pk).filter(assignment__in=latest[:TIMED_AMONG], revision=1)
    # Sorted here: for the newest few of them PostgreSQL would look through everybody's annotations.
    timed = mine.filter(active_seconds__isnull=False).order_by().values_list("pk", "active_seconds")
    seconds = [duration for _pk, duration in sorted(timed, reverse=True)[:PACE_OVER] if duration is not None]
    return median(seconds) if seconds else None


@dataclass(frozen=True)
class PeerAgreement:
    """Quadratic-weighted kappa with all others, by attribute: over all weeks together, and for each week.

    It is None if fewer than FEWEST_SHARED responses are shared, or if the scores do not vary. `higher` holds how many
    levels higher than the others one has rated, by week.
    """

    weeks: Sequence[date]
    overall: dict[str, float | None]
    by_week: dict[str, Sequence[float | None]]
    higher: dict[str, Sequence[float | None]]
    shared: int

    def drift(self, attribute: str) -> float | None:
        """Returns by how many levels this week's difference from the others is off one's median of earlier weeks."""
        *earlier, this_week = self.higher[attribute]
        known = [one for one in earlier if one is not None]
        return this_week - median(known) if known and this_week is not None else None


# LATERAL and its LIMIT: plain joins would be planned as if most annotations were wanted, and read all of them.
_SQL = """
WITH counting AS (
    SELECT a.id, a.week, row_number() OVER (ORDER BY s.id) AS place, count(*) OVER () AS n
    FROM annotator_assignment s
    JOIN annotator_task t ON t.id = s.task_id AND t.project_id = %s AND t.state = 'complete'
    CROSS JOIN LATERAL (
        SELECT id, date_trunc('week', submitted_at)::date AS week FROM annotator_annotation
        WHERE assignment_id = s.id AND is_current AND submitted_at >= %s LIMIT 1
    ) a
    WHERE s.id = ANY(%s::bigint[]) AND s.state = 'submitted' AND s.counts
), mine AS (
    SELECT r.response_id, r.scores, c.id, c.week FROM counting c JOIN annotator_rating r ON r.annotation_id = c.id
    WHERE c.place %% ((c.n - 1) / %s + 1) = 0
), pair AS (
    SELECT mine.week, mine.response_id, score.key, score.value::float8 AS x, (r.scores ->> score.key)::float8 AS y
    FROM mine
    JOIN annotator_rating r ON r.response_id = mine.response_id
    JOIN annotator_annotation b ON b.id = r.annotation_id AND b.is_current AND b.id <> mine.id
    JOIN annotator_assignment peer ON peer.id = b.assignment_id AND peer.counts
    CROSS JOIN LATERAL jsonb_each_text(mine.scores) AS score
    WHERE r.scores ? score.key
)
SELECT key, week, count(DISTINCT response_id), avg((x - y) ^ 2), var_pop(x) + var_pop(y) + (avg(x) - avg(y)) ^ 2,
    avg(x - y)
FROM pair GROUP BY GROUPING SETS ((key, week), (key))
"""


def agreement_with_peers(project: Project, latest: Sequence[int], *, now: datetime) -> PeerAgreement:
    """Returns somebody's agreement with peers over the last WEEKS weeks; each pair of scores has the same weight.

    It looks at their latest assignments, and of more than MOST_COMPARED tasks at every n-th.
    """
    monday = now.date() - timedelta(days=now.weekday())
    weeks = [monday - timedelta(weeks=n) for n in reversed(range(WEEKS))]
    with connection.cursor() as cursor:
        cursor.execute(_SQL, [project.pk, weeks[0], array(latest), MOST_COMPARED])
        by_week = {(key, week): tuple(row) for key, week, *row in cursor.fetchall()}
    keys = project.attribute_keys()
    return PeerAgreement(
        weeks=weeks,
        overall={key: _kappa(by_week.get((key, None))) for key in keys},
        by_week={key: [_kappa(by_week.get((key, week))) for week in weeks] for key in keys},
        higher={
            key: [
                row[3] if row and row[0] >= FEWEST_SHARED else None
                for row in (by_week.get((key, week)) for week in weeks)
            ]
            for key in keys
        },
        shared=max((int(row[0]) for row in by_week.values()), default=0),
    )


def _kappa(row: tuple[float, ...] | None) -> float | None:
    """Returns kappa, or None if so few responses are shared that it would reveal single ratings."""
    if row is None or row[0] < FEWEST_SHARED:
        return None
    _, squared_difference, by_chance, _higher = row
    return kappa_of_means(squared_difference, by_chance)
