"""How far annotators agree: quadratic-weighted Cohen's kappa per attribute, one SQL aggregate for all of a project.

Pooled over every ordered pair of raters of a sample, kappa has the closed form
1 - mean[(a - b)^2] / (2 Var(ratings in those pairs)); samples weigh equally whatever their number of raters.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, pvariance

from django.db import connection

from annotator.models import Project


class Selection(StrEnum):
    """Which annotations count; those of dropped tasks are not kept.

    Keeping the closest raises kappa by construction, so all three are shown.
    """

    FIRST_THREE = "first_three"
    ALL = "all"
    KEPT = "kept"


@dataclass(frozen=True)
class Agreement:
    """Kappa of one attribute over `samples` responses with two or more ratings; None where it is undefined."""

    kappa: float | None
    samples: int
    ratings: int
    undefined_because: str = ""


_CHOSEN = {
    Selection.FIRST_THREE: "place <= 3",
    Selection.ALL: "true",
    Selection.KEPT: "annotation_id = ANY(kept) AND dropped_because = ''",
}

# With n ratings x of a sample, the mean of (a - b)^2 over its ordered pairs is 2 (sum x^2 - (sum x)^2 / n) / (n - 1).
_SQL = """
WITH chosen AS (
    SELECT r.response_id, r.scores, a.id AS annotation_id, c.kept, c.dropped_because,
           row_number() OVER (PARTITION BY r.response_id ORDER BY a.submitted_at, a.id) AS place
    FROM annotator_rating r
    JOIN annotator_annotation a ON a.id = r.annotation_id AND a.is_current
    JOIN annotator_assignment s ON s.id = a.assignment_id
    JOIN annotator_task t ON t.id = s.task_id AND t.project_id = %s AND t.state IN ('open', 'complete')
    LEFT JOIN annotator_consensus c ON c.task_id = t.id
), sample AS (
    SELECT score.key AS attribute, response_id, count(*)::float8 AS n,
           sum(score.value::float8) AS total, sum(score.value::float8 ^ 2) AS squares
    FROM chosen CROSS JOIN LATERAL jsonb_each_text(chosen.scores) AS score
    WHERE {condition}
    GROUP BY score.key, response_id
    HAVING count(*) >= 2
)
SELECT attribute, count(*), sum(n), avg(2 * (squares - total ^ 2 / n) / (n - 1)), avg(squares / n), avg(total / n)
FROM sample GROUP BY attribute
"""


def weighted_kappa(*, squared_difference: float, mean_square: float, mean: float) -> float | None:
    """The closed form from three means over equally weighted samples; None when the ratings never vary."""
    variance = mean_square - mean**2
    return None if variance <= 1e-12 else 1 - squared_difference / (2 * variance)


def paired_kappa(pairs: Sequence[tuple[int, int]]) -> float | None:
    """Quadratic-weighted Cohen's kappa of two given raters, from (one, other) scores of the same samples.

    1 - mean[(a - b)^2] / mean over all samples i, j of (a_i - b_j)^2; None when both raters give one score throughout.
    """
    if not pairs:
        return None
    ones, others = zip(*pairs, strict=True)
    by_chance = pvariance(ones) + pvariance(others) + (fmean(ones) - fmean(others)) ** 2
    return None if by_chance <= 1e-12 else 1 - fmean((a - b) ** 2 for a, b in pairs) / by_chance


@dataclass(frozen=True)
class AgainstExperts:
    """Kappa with the experts by attribute; None for an attribute that the experts rate alike throughout."""

    kappas: Mapping[str, float | None]
    identical: bool

    @property
    def mean(self) -> float | None:
        """Over the attributes where kappa is defined."""
        defined = [kappa for kappa in self.kappas.values() if kappa is not None]
        return fmean(defined) if defined else None


def against_experts(rated: Sequence[tuple[Mapping[str, int], Mapping[str, int]]]) -> AgainstExperts:
    """From the scores of somebody and of the experts, by attribute, for each response that both rated."""
    pairs: dict[str, list[tuple[int, int]]] = {}
    for mine, experts in rated:
        for key, score in experts.items():
            if key in mine:
                pairs.setdefault(key, []).append((mine[key], score))
    # Where experts never vary, any deviation makes kappa 0: it would measure the gold tasks, not the annotator.
    kappas = {key: paired_kappa(both) if len({b for _, b in both}) > 1 else None for key, both in pairs.items()}
    return AgainstExperts(kappas, identical=all(a == b for both in pairs.values() for a, b in both))


def agreement(project: Project, selection: Selection) -> dict[str, Agreement]:
    """Agreement by attribute key, in the rubric's order, over open and complete tasks."""
    with connection.cursor() as cursor:
        cursor.execute(_SQL.format(condition=_CHOSEN[selection]), [project.pk])
        rows = {row[0]: row[1:] for row in cursor.fetchall()}
    return {key: _measured(rows.get(key)) for key in project.attribute_keys()}


def _measured(row: tuple[int, float, float, float, float] | None) -> Agreement:
    if row is None:
        return Agreement(None, 0, 0, "no response has two ratings yet")
    samples, ratings, squared_difference, mean_square, mean = row
    kappa = weighted_kappa(squared_difference=squared_difference, mean_square=mean_square, mean=mean)
    reason = "every rating is the same, so agreement by chance is complete" if kappa is None else ""
    return Agreement(kappa, samples, int(ratings), reason)
