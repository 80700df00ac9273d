"""Turns the stored totals into a report: kappa of each selection, the other measures, raters, pairs and weeks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from datetime import datetime
from typing import Any

import numpy as np
from django.utils.translation import gettext as _

from annotator.agreement import intervals, measures, raters, totals
from annotator.agreement.measures import Floats, Tables, known
from annotator.agreement.pair_counts import CELLS, SELECTIONS, Columns, Kind, Selection, tallied_by_task
from annotator.agreement.raters import Pair, Rater, Week
from annotator.agreement.totals_refresh import TotalsFreshness, up_to_date
from annotator.models import Project, User

FEW = 1_000
"""The most tasks that the bootstrap draws one by one."""
_ALL = SELECTIONS.index(Selection.ALL)


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
class Closeness:
    """How close all ratings of each attribute are. None if nothing was rated twice, or never differently.

    `confusion` counts how often a rating met which other one of the same response, in both orders. The alphas give each
    rating the same weight, the other measures each response.
    """

    alpha: Mapping[str, Alpha]
    spearman: Mapping[str, float | None]
    exact: Mapping[str, float | None]
    within_one: Mapping[str, float | None]
    confusion: Mapping[str, Sequence[Sequence[int]]]


@dataclass(frozen=True)
class Report(Closeness):
    """All of a project's agreement, in the shape of the JSON that REST and the command give.

    `pairs` holds the pairs that share most, of all annotators or of one. The report holds `as_of` a time, and `pending`
    changes since then are not in it.
    """

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
        return {key: as_json(part, name=name) for key, part in vars(value).items()}
    if isinstance(value, Mapping):
        return {key: as_json(part, name=name) for key, part in value.items()}
    return [as_json(part, name=name) for part in value] if isinstance(value, list | tuple) else value


def agreement(project: Project, selection: Selection, *, now: datetime) -> dict[str, Agreement]:
    """Returns agreement by attribute key, in the rubric's order, over open and complete tasks, without intervals."""
    return kappas(project, now=now)[selection]


def kappas(project: Project, *, now: datetime) -> dict[Selection, dict[str, Agreement]]:
    """Returns kappa of each selection and attribute, without intervals."""
    freshness = up_to_date(project, now=now)
    return _kappas(_Counted(Tables.of(totals.stored(project, Kind.PROJECT), freshness.columns), freshness))


def trend(project: Project, *, now: datetime) -> tuple[dict[Selection, dict[str, Agreement]], list[Week]]:
    """Returns kappa of each selection and attribute without intervals, and the kappas by week, oldest first."""
    freshness = up_to_date(project, now=now)
    counted = _Counted(Tables.of(totals.stored(project, Kind.PROJECT), freshness.columns), freshness)
    return _kappas(counted), raters.weeks(project, freshness.columns)


def report(project: Project, *, now: datetime, pairs_of: User | None = None) -> Report:
    """Returns the whole report, as of now or, if much has changed, as of the last count."""
    freshness = up_to_date(project, now=now)
    columns = freshness.columns
    tables = Tables.of(totals.stored(project, Kind.PROJECT), columns)
    counted = _Counted(tables, freshness, _intervals(project, columns))
    selections = _kappas(counted)
    return Report(
        first_three=selections[Selection.FIRST_THREE],
        all=selections[Selection.ALL],
        kept=selections[Selection.KEPT],
        **vars(_closeness(tables, columns, project.scales_ever())),
        preference=_preferences(counted),
        ranking=_rankings(counted),
        safety=_safety(counted),
        annotators=raters.raters(project, columns),
        pairs=raters.pairs(project, columns, of=pairs_of),
        weeks=raters.weeks(project, columns),
        as_of=freshness.as_of,
        pending=freshness.pending,
    )


@dataclass(frozen=True)
class _Counted:
    """What has been counted, how up to date it is, and the ends of the intervals, where these are wanted."""

    tables: Tables
    freshness: TotalsFreshness
    ends: Floats | None = None


def _intervals(project: Project, columns: Columns) -> Floats:
    few = totals.few_counted(project, columns.record, most=FEW)
    groups = totals.stored(project, Kind.BUCKET) if few is None else tallied_by_task(few, columns)
    return intervals.intervals(groups, columns)


# Kappa -----------------------------------------------------------------------------------------------------


def _kappas(counted: _Counted) -> dict[Selection, dict[str, Agreement]]:
    kappas = measures.kappa(counted.tables.by_sample)
    return {
        selection: {
            key: _agreement(counted, kappas, (row, column))
            for column, key in enumerate(counted.freshness.columns.attributes)
        }
        for row, selection in enumerate(SELECTIONS)
    }


def _agreement(counted: _Counted, kappas: Floats, place: tuple[int, int]) -> Agreement:
    tables, ends = counted.tables, counted.ends
    samples, ratings = round(tables.by_sample[place].sum()), round(tables.by_rating[place].sum())
    if not samples and counted.freshness.pending:
        return Agreement(None, 0, 0, _("the ratings are still being counted"))
    if not samples:
        return Agreement(None, 0, 0, _("no response has two ratings yet"))
    kappa = known(kappas[place])
    reason = _("all ratings are the same, so chance alone would give full agreement") if kappa is None else ""
    interval = None if ends is None or kappa is None or np.isnan(ends[place]).any() else ends[place].tolist()
    return Agreement(kappa, samples, ratings, reason, interval and (interval[0], interval[1]))


# The other measures ----------------------------------------------------------------------------------------


def _closeness(tables: Tables, columns: Columns, scales: Mapping[str, int]) -> Closeness:
    chosen = slice(0, len(columns.attributes))
    met, by_sample, by_rating = (table[_ALL, chosen] for table in (tables.met, tables.by_sample, tables.by_rating))
    ordinal, interval = (measures.alpha(by_rating, ordinal=is_ordinal) for is_ordinal in (True, False))
    keys = columns.attributes

    def by_key(measured: Floats) -> dict[str, float | None]:
        return {key: known(measured[place]) for place, key in enumerate(keys)}

    cells = {key: scales.get(key, CELLS) for key in keys}
    return Closeness(
        alpha={key: Alpha(known(ordinal[place]), known(interval[place])) for place, key in enumerate(keys)},
        spearman=by_key(measures.spearman(by_sample)),
        exact=by_key(measures.exact(by_sample)),
        within_one=by_key(measures.within_one(by_sample)),
        confusion={key: met[place, : cells[key], : cells[key]].astype(int).tolist() for place, key in enumerate(keys)},
    )


def _preferences(counted: _Counted) -> PreferenceAgreement:
    tables, columns = counted.tables, counted.freshness.columns
    place = (_ALL, columns.preference)
    table = tables.by_sample[place]
    # The lower three strengths prefer the first response; between them and the upper three a tie may stand.
    sides = (slice(0, 3), slice(3, 4), slice(4, 7)) if columns.ties else (slice(0, 3), slice(3, 6))
    same = sum(table[side, side].sum() for side in sides)
    neither = tables.by_rating[_ALL, columns.neither].sum(-1)
    return PreferenceAgreement(
        **vars(_agreement(counted, measures.kappa(tables.by_sample), place)),
        nominal_kappa=known(float(measures.nominal_kappa(table))),
        same_side=float(same / table.sum()) if table.any() else None,
        neither=float(neither[1] / neither.sum()) if neither.any() else None,
    )


def _rankings(counted: _Counted) -> RankingAgreement:
    tables, columns = counted.tables, counted.freshness.columns
    place = (_ALL, columns.ranking)
    every = _agreement(counted, measures.kappa(tables.by_sample), place)
    orders = tables.by_rating[place].sum(-1)
    # Every two responses are counted in both orders, and reported once.
    halved = vars(every) | {"samples": every.samples // 2, "ratings": every.ratings // 2}
    return RankingAgreement(
        **halved,
        same_order=known(float(measures.exact(tables.by_sample[place]))),
        ties=float(orders[1] / orders.sum()) if orders.any() else None,
    )


def _safety(counted: _Counted) -> SafetyAgreement:
    tables, columns = counted.tables, counted.freshness.columns
    place = (_ALL, columns.safety)
    verdicts = tables.by_rating[place].sum(-1)
    return SafetyAgreement(
        **vars(_agreement(counted, measures.kappa(tables.by_sample), place)),
        exact=known(float(measures.exact(tables.by_sample[place]))),
        unsafe=float(verdicts[0] / verdicts.sum()) if verdicts.any() else None,
    )
