"""Reports agreement by annotator against the others, by pair of annotators, and by week."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
from django.db.models import Q

from annotator.agreement import measures, totals
from annotator.agreement.measures import Floats, Meetings, known
from annotator.agreement.pair_counts import Columns, Kind
from annotator.models import AgreementTotal, Project, User
from annotator.projects.pseudonyms import Naming

TOGETHER = 10
"""Responses that two annotators must share to be reported as a pair."""
PAIRS = 50
WEEKS = 53
_MONDAY = date(1970, 1, 5)


@dataclass(frozen=True)
class Rater:
    """One annotator against all who rated the same `shared` responses, by attribute.

    `bias` is the annotator's rating minus the others', in levels.
    """

    annotator: User
    shared: int
    kappa: Mapping[str, float | None]
    exact: Mapping[str, float | None]
    bias: Mapping[str, float | None]


@dataclass(frozen=True)
class Pair:
    """Agreement of two annotators on the responses that both have rated."""

    annotators: tuple[User, User]
    shared: int
    kappa: Mapping[str, float | None]


@dataclass(frozen=True)
class Week:
    """Agreement on the responses whose latest rating came in a week, named by its Monday."""

    week: date
    samples: int
    kappa: Mapping[str, float | None]


def raters(project: Project, columns: Columns) -> list[Rater]:
    """Returns the annotators who share a response with anybody, in the order of how many they share, most first."""
    meetings = Meetings.of(totals.stored(project, Kind.RATER), columns)
    users = User.objects.only("username").in_bulk(meetings.owners.tolist())
    kappa, exact, bias = (measure(meetings.tables) for measure in (measures.kappa, measures.exact, measures.bias))
    return [
        Rater(
            users[owner],
            int(meetings.shared[place]),
            kappa=_by_key(columns, kappa[place]),
            exact=_by_key(columns, exact[place]),
            bias=_by_key(columns, bias[place]),
        )
        for place, owner in _most_first(meetings)
        if owner in users and meetings.shared[place]
    ]


def pairs(project: Project, columns: Columns, *, of: User | None = None) -> list[Pair]:
    """Returns up to PAIRS pairs that share TOGETHER responses or more, of all annotators or `of` one, most first."""
    rows = AgreementTotal.objects.filter(project=project, kind=Kind.PAIR, shared__gte=TOGETHER)
    if of:
        rows = rows.filter(Q(one=of.pk) | Q(other=of.pk))
    most = rows.order_by("-shared", "one", "other").values_list("one", "other", "cells")[:PAIRS]
    meetings = Meetings.of(totals.unpacked(Kind.PAIR, list(most)), columns)
    sides = {side for owner in meetings.owners.tolist() for side in totals.sides(owner)}
    users = User.objects.only("username").in_bulk(sides)
    kappa = measures.kappa(meetings.tables)
    pairs = ((place, [users.get(side) for side in totals.sides(owner)]) for place, owner in _most_first(meetings))
    return [
        Pair((one, other), int(meetings.shared[place]), kappa=_by_key(columns, kappa[place]))
        for place, (one, other) in pairs
        if one and other
    ]


def rater_called(project: Project, name: str, *, naming: Naming) -> User | None:
    """Returns the annotator of that name, if they have rated anything in the project."""
    user = naming.person(name)
    return user if user and user.assignments.submitted().filter(task__project=project).exists() else None


def _most_first(meetings: Meetings) -> Sequence[tuple[int, int]]:
    """Returns the place and the number of each owner, by how many responses they share, most first."""
    # Ties by number, so that two reports of the same counts list the same order.
    order = np.lexsort((meetings.owners, -meetings.shared)).tolist()
    return [(place, int(meetings.owners[place])) for place in order]


def weeks(project: Project, columns: Columns) -> list[Week]:
    """Returns the latest WEEKS weeks in which anything was rated, oldest first."""
    rows = AgreementTotal.objects.filter(project=project, kind=Kind.WEEK).order_by("-one")
    counts = totals.unpacked(Kind.WEEK, list(rows.values_list("one", "other", "cells")[:WEEKS]))
    numbers, tables = measures.by_sample_and_owner(counts, columns)
    kappa, samples = measures.kappa(tables), tables[:, : len(columns.attributes)].sum((-1, -2)).max(-1, initial=0)
    return [
        Week(_MONDAY + timedelta(weeks=week), round(samples[place]), _by_key(columns, kappa[place]))
        for place, week in enumerate(numbers.tolist())
    ]


def _by_key(columns: Columns, values: Floats) -> dict[str, float | None]:
    return {key: known(values[column]) for column, key in enumerate(columns.attributes)}
