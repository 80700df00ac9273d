"""Turns the stored totals into a report: kappa of each selection, the other measures, raters, pairs and weeks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
from django.db.models import Q
from django.utils.translation import gettext as _

from annotator.analysis.agreement import totals
from annotator.models import AgreementTotal, Project, User
from annotator.reading.pseudonyms import Naming
from annotator.statistics import measures
from annotator.statistics.measures import Floats, Meetings, Tables, known
from annotator.statistics.pair_counts import CELLS, SELECTIONS, Kind, PairColumns, Selection, tallied_by_task

FEW = 1_000
"""The most tasks that the bootstrap draws one by one."""
TOGETHER = 10
"""Responses that two annotators must share to be reported as a pair."""
PAIRS = 50
WEEKS = 53
_MONDAY = date(1970, 1, 5)
_ALL = SELECTIONS.index(Selection.ALL)
ByAttribute = Mapping[str, float | None]


@dataclass(frozen=True)
class Agreement:
    """Kappa of one attribute over `samples` with two or more ratings; None if it is undefined.

    A sample is a response, or one of its segments where the attribute is about segments.

    `interval` is the 95 % interval: where kappa would lie for other tasks of the same kind.
    """

    kappa: float | None
    samples: int
    ratings: int
    undefined_reason: str = ""
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class PreferenceAgreement(Agreement):
    """Agreement on preferences, over the strengths without "neither": six, or seven where ties are allowed.

    Kappa is the ordinal one, with quadratic weights; for `nominal_kappa` every two strengths differ alike. `same_side`
    is the share of pairs of raters who prefer the same response, or none; `neither` the share of preferences that are
    "neither".
    """

    nominal_kappa: float | None = None
    same_side: float | None = None
    neither: float | None = None


@dataclass(frozen=True)
class RankingAgreement(Agreement):
    """Agreement on rankings, over every two ranked responses of a task.

    Without ties kappa is the mean of Kendall's tau of two annotators. `same_order` is the share of pairs of annotators
    who order two responses alike, `ties` the share of ties.
    """

    same_order: float | None = None
    ties: float | None = None


@dataclass(frozen=True)
class SafetyAgreement(Agreement):
    """Agreement on safe or unsafe: `exact` is the raw agreement, `unsafe` the share of verdicts that say so."""

    exact: float | None = None
    unsafe: float | None = None


@dataclass(frozen=True)
class Alpha:
    """Krippendorff's alpha of one attribute with the ordinal and the interval distance."""

    ordinal: float | None
    interval: float | None


@dataclass(frozen=True)
class Rater:
    """One annotator against all who rated the same `shared` responses, by attribute.

    `bias` is the annotator's rating minus the others', in levels.
    """

    annotator: User
    shared: int
    kappa: ByAttribute
    exact: ByAttribute
    bias: ByAttribute


@dataclass(frozen=True)
class Pair:
    """Agreement of two annotators on the responses that both have rated."""

    annotators: tuple[User, User]
    shared: int
    kappa: ByAttribute


@dataclass(frozen=True)
class Week:
    """Agreement on the responses whose latest rating came in a week, named by its Monday."""

    week: date
    samples: int
    kappa: ByAttribute


@dataclass(frozen=True)
class AgreementReport:
    """All of a project's agreement, in the shape of the JSON that REST and the command give.

    A measure is None if nothing was rated twice, or never differently. The alphas give each rating the same weight, the
    other measures each response. `confusion` counts how often a rating met which other one of the same response, in
    both orders. `pairs` holds the pairs that share most, of all annotators or of one. The report holds `as_of` a time,
    and `pending` changes since then are not in it.
    """

    alpha: Mapping[str, Alpha]
    spearman: ByAttribute
    exact: ByAttribute
    within_one: ByAttribute
    confusion: Mapping[str, Sequence[Sequence[int]]]
    first_three: Mapping[str, Agreement]
    all: Mapping[str, Agreement]
    kept: Mapping[str, Agreement]
    preference: PreferenceAgreement
    ranking: RankingAgreement
    safety: SafetyAgreement
    annotators: Sequence[Rater]
    pairs: Sequence[Pair]
    weeks: Sequence[Week]
    as_of: datetime | None
    pending: int

    @property
    def selections(self) -> dict[Selection, Mapping[str, Agreement]]:
        return {Selection.FIRST_THREE: self.first_three, Selection.ALL: self.all, Selection.KEPT: self.kept}


def as_json(value: Any, *, name: Callable[[User], str]) -> Any:
    """Returns a report as plain values; `name` returns an annotator's name."""
    if isinstance(value, User):
        return name(value)
    if is_dataclass(value):
        value = vars(value)
    if isinstance(value, Mapping):
        return {key: as_json(part, name=name) for key, part in value.items()}
    return [as_json(part, name=name) for part in value] if isinstance(value, list | tuple) else value


def trend(project: Project, *, now: datetime) -> tuple[dict[Selection, dict[str, Agreement]], list[Week]]:
    """Returns kappa of each selection and attribute without intervals, and the kappas by week, oldest first."""
    counted = _Counted(project, now=now)
    return counted.by_selection(), weeks(project, counted.columns)


def report(project: Project, *, now: datetime, pairs_of: User | None = None) -> AgreementReport:
    """Returns the whole report, as of now or, if much has changed, as of the last count."""
    counted = _Counted(project, now=now)
    columns, selections = counted.columns, counted.by_selection(with_intervals=True)
    place = (_ALL, counted.columns.safety)
    verdicts = counted.tables.by_rating[place].sum(-1)
    return AgreementReport(
        **_closeness(counted.tables, columns, project.scales_ever()),
        first_three=selections[Selection.FIRST_THREE],
        all=selections[Selection.ALL],
        kept=selections[Selection.KEPT],
        preference=_preferences(counted),
        ranking=_rankings(counted),
        safety=SafetyAgreement(
            **vars(counted.at(place)),
            exact=known(float(measures.exact(counted.tables.by_sample[place]))),
            unsafe=float(verdicts[0] / verdicts.sum()) if verdicts.any() else None,
        ),
        annotators=raters(project, columns),
        pairs=pairs(project, columns, of=pairs_of),
        weeks=weeks(project, columns),
        as_of=counted.as_of,
        pending=counted.pending,
    )


# Kappa -----------------------------------------------------------------------------------------------------


class _Counted:
    """What has been counted, how up to date it is, and the ends of the intervals, once these are wanted."""

    def __init__(self, project: Project, *, now: datetime) -> None:
        freshness = totals.up_to_date(project, now=now)
        self.project, self.columns = project, freshness.columns
        self.as_of, self.pending = freshness.as_of, freshness.pending
        self.tables = Tables.of(totals.stored(project, Kind.PROJECT), self.columns)
        self.kappas = measures.kappa(self.tables.by_sample)
        self.ends: Floats | None = None

    def by_selection(self, *, with_intervals: bool = False) -> dict[Selection, dict[str, Agreement]]:
        if with_intervals:
            few = totals.few_counted(self.project, self.columns.record, most=FEW)
            groups = totals.stored(self.project, Kind.BUCKET) if few is None else tallied_by_task(few, self.columns)
            self.ends = measures.intervals(groups, self.columns)
        keys = list(enumerate(self.columns.attributes))
        return {one: {key: self.at((row, column)) for column, key in keys} for row, one in enumerate(SELECTIONS)}

    def at(self, place: tuple[int, int]) -> Agreement:
        """Returns kappa of a selection and a column."""
        samples, ratings = round(self.tables.by_sample[place].sum()), round(self.tables.by_rating[place].sum())
        if not samples and self.pending:
            return Agreement(None, 0, 0, _("the ratings are still being counted"))
        if not samples:
            return Agreement(None, 0, 0, _("no response has two ratings yet"))
        kappa = known(self.kappas[place])
        reason = _("all ratings are the same, so chance alone would give full agreement") if kappa is None else ""
        ends = None if self.ends is None or kappa is None or np.isnan(self.ends[place]).any() else self.ends[place]
        return Agreement(kappa, samples, ratings, reason, None if ends is None else (float(ends[0]), float(ends[1])))


# The other measures ----------------------------------------------------------------------------------------


def _closeness(tables: Tables, columns: PairColumns, scales: Mapping[str, int]) -> dict[str, Any]:
    """Returns how close all ratings of each attribute are, by the names of the report's fields."""
    keys = list(enumerate(columns.attributes))
    met, by_sample, by_rating = (
        table[_ALL, : len(columns.attributes)] for table in (tables.met, tables.by_sample, tables.by_rating)
    )
    ordinal, interval = (measures.alpha(by_rating, ordinal=is_ordinal) for is_ordinal in (True, False))
    cells = {key: scales.get(key, CELLS) for key in columns.attributes}
    return {
        "alpha": {key: Alpha(known(ordinal[place]), known(interval[place])) for place, key in keys},
        "spearman": _by_key(columns, measures.spearman(by_sample)),
        "exact": _by_key(columns, measures.exact(by_sample)),
        "within_one": _by_key(columns, measures.within_one(by_sample)),
        "confusion": {key: met[place, : cells[key], : cells[key]].astype(int).tolist() for place, key in keys},
    }


def _by_key(columns: PairColumns, values: Floats) -> dict[str, float | None]:
    return {key: known(values[column]) for column, key in enumerate(columns.attributes)}


def _preferences(counted: _Counted) -> PreferenceAgreement:
    tables, columns = counted.tables, counted.columns
    table = tables.by_sample[_ALL, columns.preference]
    # The lower three strengths prefer the first response; between them and the upper three a tie may stand.
    sides = (slice(0, 3), slice(3, 4), slice(4, 7)) if columns.ties else (slice(0, 3), slice(3, 6))
    same = sum(table[side, side].sum() for side in sides)
    neither = tables.by_rating[_ALL, columns.neither].sum(-1)
    return PreferenceAgreement(
        **vars(counted.at((_ALL, columns.preference))),
        nominal_kappa=known(float(measures.nominal_kappa(table))),
        same_side=float(same / table.sum()) if table.any() else None,
        neither=float(neither[1] / neither.sum()) if neither.any() else None,
    )


def _rankings(counted: _Counted) -> RankingAgreement:
    place = (_ALL, counted.columns.ranking)
    every = counted.at(place)
    orders = counted.tables.by_rating[place].sum(-1)
    # Every two responses are counted in both orders, and reported once.
    halved = vars(every) | {"samples": every.samples // 2, "ratings": every.ratings // 2}
    return RankingAgreement(
        **halved,
        same_order=known(float(measures.exact(counted.tables.by_sample[place]))),
        ties=float(orders[1] / orders.sum()) if orders.any() else None,
    )


# By annotator, by pair and by week -------------------------------------------------------------------------


def raters(project: Project, columns: PairColumns) -> list[Rater]:
    """Returns the annotators who share a response with anybody, in the order of how many they share, most first."""
    meetings = Meetings.of(totals.stored(project, Kind.RATER), columns)
    users = User.objects.only("username").in_bulk(meetings.owners.tolist())
    measured = [measure(meetings.tables) for measure in (measures.kappa, measures.exact, measures.bias)]
    return [
        Rater(users[owner], int(meetings.shared[place]), *(_by_key(columns, values[place]) for values in measured))
        for place, owner in _most_first(meetings)
        if owner in users and meetings.shared[place]
    ]


def pairs(project: Project, columns: PairColumns, *, of: User | None = None) -> list[Pair]:
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


def _most_first(meetings: Meetings) -> Sequence[tuple[int, int]]:
    """Returns the place and the number of each owner, by how many responses they share, most first."""
    # Ties by number, so that two reports of the same counts list the same order.
    order = np.lexsort((meetings.owners, -meetings.shared)).tolist()
    return [(place, int(meetings.owners[place])) for place in order]


def weeks(project: Project, columns: PairColumns) -> list[Week]:
    """Returns the latest WEEKS weeks in which anything was rated, oldest first."""
    rows = AgreementTotal.objects.filter(project=project, kind=Kind.WEEK).order_by("-one")
    counts = totals.unpacked(Kind.WEEK, list(rows.values_list("one", "other", "cells")[:WEEKS]))
    numbers, tables = measures.by_sample_and_owner(counts, columns)
    kappa, samples = measures.kappa(tables), tables[:, : len(columns.attributes)].sum((-1, -2)).max(-1, initial=0)
    return [
        Week(_MONDAY + timedelta(weeks=week), round(samples[place]), _by_key(columns, kappa[place]))
        for place, week in enumerate(numbers.tolist())
    ]


def rater_called(project: Project, name: str, *, naming: Naming) -> User | None:
    """Returns the annotator of that name, if they have rated anything in the project."""
    user = naming.person(name)
    return user if user and user.assignments.submitted().filter(task__project=project).exists() else None
