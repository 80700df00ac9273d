"""The agreement page: how far a project's annotators agree, for its reviewers and managers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import fmean
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from annotator import access
from annotator.access import user_of
from annotator.agreement.pair_counts import Selection
from annotator.agreement.reports import Agreement, Pair, Rater, Report, rater_called, report
from annotator.db.clock import database_now
from annotator.models import Attribute, Project
from annotator.projects.pseudonyms import Naming
from annotator.views import agreement_charts as charts
from annotator.web.query_parameters import number_in

RATERS_SHOWN = 50
MOST_RATERS = 999_999


@require_GET
def agreement(request: HttpRequest, slug: str) -> HttpResponse:
    """Shows all measures. `by` sorts the annotators, `from` pages through them, `with` picks whose pairs are shown."""
    user = user_of(request)
    project = access.reviewed_project(user, slug)
    naming = access.naming_for(user, project)
    rater = rater_called(project, request.GET.get("with", ""), naming=naming)
    measured = report(project, now=database_now(), pairs_of=rater)
    ever = [one for scope in Attribute.Scope for one in project.attributes_ever(scope)]
    asked, known = {attribute.key for attribute in project.every_attribute()}, measured.all
    attributes = [one for one in ever if one.key in known and (one.key in asked or known[one.key].samples)]
    order = Order.read(request.GET.get("by", ""), attributes)
    rows = order.sorted([Row.of(rater, attributes, name=naming) for rater in measured.annotators])
    shares = (measured.spearman, measured.exact, measured.within_one)
    page = {
        "project": project,
        "report": measured,
        "attributes": attributes,
        "no_longer_asked": [one.shown_name for one in attributes if one.key not in asked],
        "kappas": [
            (attribute, [by_attribute[attribute.key] for by_attribute in measured.selections.values()])
            for attribute in attributes
        ],
        "rated": max((estimate.samples for estimate in known.values()), default=0),
        "reasons": _reasons(measured),
        "closeness": [
            (attribute, measured.alpha[attribute.key], *(measure[attribute.key] for measure in shares))
            for attribute in attributes
        ],
        "confusions": [(attribute, charts.heat(measured.confusion[attribute.key])) for attribute in attributes],
        "by_attribute": charts.by_attribute(attributes, _selections(measured, project)),
        "by_week": charts.by_week(
            attributes,
            [(week.week, week.kappa) for week in measured.weeks],
            counts=[week.samples for week in measured.weeks],
        ),
        "order": order,
        "pairs": [_pair(pair, attributes, name=naming) for pair in measured.pairs],
        "whose": request.GET["with"] if rater else "",
        **_part(rows, number_in(request.GET, "from", most=MOST_RATERS) or 0),
    }
    return render(request, "agreement.html", page)


def _selections(agreement: Report, project: Project) -> list[tuple[str, Mapping[str, Agreement]]]:
    """Returns the selections by their names; where at most two rate, the first three are all."""
    names = {Selection.FIRST_THREE: _("First three"), Selection.ALL: _("All"), Selection.KEPT: _("Kept")}
    return [
        (names[selection], estimates)
        for selection, estimates in agreement.selections.items()
        if project.max_annotators > 2 or selection != Selection.FIRST_THREE
    ]


def _reasons(agreement: Report) -> list[str]:
    """Returns why kappas that have samples are undefined all the same."""
    estimates = [estimate for by_attribute in agreement.selections.values() for estimate in by_attribute.values()]
    reasons = {estimate.undefined_reason for estimate in estimates if estimate.samples}
    return sorted(reasons - {""})


def _part(rows: Sequence["Row"], first: int) -> dict[str, Any]:
    """Returns a page of annotators, and where the pages before and after it begin."""
    end = first + RATERS_SHOWN
    return {
        "raters": rows[first:end],
        "earlier": max(first - RATERS_SHOWN, 0) if first else None,
        "later": end if end < len(rows) else None,
    }


def _pair(pair: Pair, attributes: Sequence[Attribute], *, name: Naming) -> dict[str, Any]:
    return {
        "names": tuple(map(name, pair.annotators)),
        "shared": pair.shared,
        "mean": _mean(pair.kappa),
        "kappas": [pair.kappa[attribute.key] for attribute in attributes],
    }


def _mean(measures: Mapping[str, float | None]) -> float | None:
    defined = [measure for measure in measures.values() if measure is not None]
    return fmean(defined) if defined else None


# The table of annotators -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One annotator: means over the attributes, and the kappa of each attribute."""

    name: str
    shared: int
    kappa: float | None
    exact: float | None
    bias: float | None
    kappas: Sequence[float | None]

    @classmethod
    def of(cls, rater: Rater, attributes: Sequence[Attribute], *, name: Naming) -> "Row":
        return cls(
            name=name(rater.annotator),
            shared=rater.shared,
            kappa=_mean(rater.kappa),
            exact=_mean(rater.exact),
            bias=_mean(rater.bias),
            kappas=[rater.kappa[attribute.key] for attribute in attributes],
        )


@dataclass(frozen=True)
class Heading:
    """A column of the table: what a click on it sorts by, and how it is sorted now."""

    label: str
    link: str
    sorted: str


@dataclass(frozen=True)
class Order:
    """The order of the table: by a column of `Row`, or by the kappa of one attribute."""

    by: str
    falling: bool
    attributes: Sequence[Attribute]

    COLUMNS = ("name", "shared", "kappa", "exact", "bias")

    @classmethod
    def read(cls, text: str, attributes: Sequence[Attribute]) -> "Order":
        """Reads the order from an address. `-` before the name reverses it; an unknown name means most shared first."""
        by, known = text.removeprefix("-"), {*cls.COLUMNS, *(f"kappa.{attribute.key}" for attribute in attributes)}
        return cls(by, text.startswith("-"), attributes) if by in known else cls("shared", True, attributes)

    def sorted(self, rows: Sequence[Row]) -> list[Row]:
        """Sorts the rows. Undefined values come last, whichever way the column is sorted."""
        known = [row for row in rows if self._value(row) is not None]
        unknown = [row for row in rows if self._value(row) is None]
        return sorted(known, key=self._value, reverse=self.falling) + unknown

    def _value(self, row: Row) -> Any:
        if not self.by.startswith("kappa."):
            return attrgetter(self.by)(row)
        return row.kappas[[attribute.key for attribute in self.attributes].index(self.by.removeprefix("kappa."))]

    def headings(self) -> Iterator[Heading]:
        yield self._heading("name", _("Annotator"))
        yield self._heading("shared", _("Shared"))
        yield self._heading("kappa", _("Kappa"))
        for attribute in self.attributes:
            yield self._heading(f"kappa.{attribute.key}", attribute.shown_name)
        yield self._heading("exact", _("Same"))
        yield self._heading("bias", _("Bias"))

    def _heading(self, column: str, label: str) -> Heading:
        now = "" if column != self.by else "descending" if self.falling else "ascending"
        return Heading(label, f"-{column}" if now == "ascending" else column, now)

    def __str__(self) -> str:
        return f"-{self.by}" if self.falling else self.by
