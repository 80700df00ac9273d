"""The agreement page: how far a project's annotators agree, for its reviewers and managers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from statistics import fmean
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from annotator.analysis.agreement.reports import Agreement, AgreementReport, Rater, rater_called, report
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.web.query_parameters import number_in
from annotator.models import Attribute, Project
from annotator.pages.projects import agreement_charts as charts
from annotator.reading import access
from annotator.reading.access import user_of
from annotator.reading.pseudonyms import Naming
from annotator.statistics.pair_counts import Selection

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
    order = RaterOrder.read(request.GET.get("by", ""), attributes)
    rows = order.sorted([_row(rater, attributes, name=naming) for rater in measured.annotators])
    shares = (measured.spearman, measured.exact, measured.within_one)
    of_kappas = [estimate for by_attribute in measured.selections.values() for estimate in by_attribute.values()]
    first = number_in(request.GET, "from", most=MOST_RATERS) or 0
    end = first + RATERS_SHOWN
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
        # Why kappas that have samples are undefined all the same.
        "reasons": sorted({estimate.undefined_reason for estimate in of_kappas if estimate.samples} - {""}),
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
        "pairs": [
            {
                "names": tuple(map(naming, pair.annotators)),
                "shared": pair.shared,
                "mean": _mean(pair.kappa),
                "kappas": [pair.kappa[attribute.key] for attribute in attributes],
            }
            for pair in measured.pairs
        ],
        "whose": request.GET["with"] if rater else "",
        "raters": rows[first:end],
        "earlier": max(first - RATERS_SHOWN, 0) if first else None,
        "later": end if end < len(rows) else None,
    }
    return render(request, "agreement.html", page)


def _selections(agreement: AgreementReport, project: Project) -> list[tuple[str, Mapping[str, Agreement]]]:
    """Returns the selections by their names; where at most two rate, the first three are all."""
    names = {Selection.FIRST_THREE: _("First three"), Selection.ALL: _("All"), Selection.KEPT: _("Kept")}
    return [
        (names[selection], estimates)
        for selection, estimates in agreement.selections.items()
        if project.max_annotators > 2 or selection != Selection.FIRST_THREE
    ]


def _mean(measures: Mapping[str, float | None]) -> float | None:
    defined = [measure for measure in measures.values() if measure is not None]
    return fmean(defined) if defined else None


# The table of annotators -----------------------------------------------------------------------------------


def _row(rater: Rater, attributes: Sequence[Attribute], *, name: Naming) -> dict[str, Any]:
    """Returns one annotator by the columns of RaterOrder: means over the attributes, and the kappa of each."""
    kappas = {f"kappa.{attribute.key}": rater.kappa[attribute.key] for attribute in attributes}
    means = {"kappa": _mean(rater.kappa), "exact": _mean(rater.exact), "bias": _mean(rater.bias)}
    return {"name": name(rater.annotator), "shared": rater.shared, "kappas": kappas.values(), **means, **kappas}


@dataclass(frozen=True)
class RaterOrder:
    """The order of the table: by one of its columns, which are here with what stands above them."""

    by: str
    falling: bool
    columns: Mapping[str, str]

    @classmethod
    def read(cls, text: str, attributes: Sequence[Attribute]) -> "RaterOrder":
        """Reads the order from an address. `-` before the name reverses it; an unknown name means most shared first."""
        columns = {"name": _("Annotator"), "shared": _("Shared"), "kappa": _("Kappa")}
        columns |= {f"kappa.{attribute.key}": attribute.shown_name for attribute in attributes}
        columns |= {"exact": _("Same"), "bias": _("Bias")}
        by = text.removeprefix("-")
        return cls(by, text.startswith("-"), columns) if by in columns else cls("shared", True, columns)

    def sorted(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Sorts the rows. Undefined values come last, whichever way the column is sorted."""
        known = [row for row in rows if row[self.by] is not None]
        unknown = [row for row in rows if row[self.by] is None]
        return sorted(known, key=itemgetter(self.by), reverse=self.falling) + unknown

    def headings(self) -> Iterator[dict[str, str]]:
        """Yields what stands above each column, what a click on it sorts by, and how it is sorted now."""
        for column, label in self.columns.items():
            now = "" if column != self.by else "descending" if self.falling else "ascending"
            yield {"label": label, "link": f"-{column}" if now == "ascending" else column, "sorted": now}

    def __str__(self) -> str:
        return f"-{self.by}" if self.falling else self.by
