"""agreement PROJECT: prints how far the annotators agree, as tables or as JSON."""

import json
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from typing import Any

from django.core.management.base import BaseCommand
from django.core.serializers.json import DjangoJSONEncoder

from annotator.agreement.pair_counts import Selection
from annotator.agreement.reports import Agreement, Report, as_json, report
from annotator.agreement.totals import rebuild, refresh
from annotator.db.clock import database_now
from annotator.management.projects import named_project


class Command(BaseCommand):
    help = (
        "Prints quadratic-weighted kappa per attribute for the first three, all and the kept annotations, with 95 % "
        "intervals; then the other measures, annotators against their peers, and weeks."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's slug")
        parser.add_argument("--json", action="store_true", help="print everything as JSON, pairs too")
        parser.add_argument("--rebuild", action="store_true", help="first count every task again from its annotations")

    def handle(self, *args: Any, **options: Any) -> None:
        project, now = named_project(options["project"]), database_now()
        if options["rebuild"]:
            # To standard error: standard output may be JSON.
            self.stderr.write(f"{rebuild(project, now=now)} tasks counted")
        refresh(project, now=now)
        agreement = report(project, now=now)
        if options["json"]:
            document = as_json(agreement, name=lambda user: user.username)
            self.stdout.write(json.dumps(document, cls=DjangoJSONEncoder, indent=2))
            return
        for title, rows in _tables(agreement):
            self.stdout.write(f"{title}\n" + "\n".join(_aligned(rows)) + "\n")


def _tables(agreement: Report) -> Iterable[tuple[str, list[Sequence[str]]]]:
    keys = list(agreement.all)
    yield "Weighted kappa, with 95 % intervals over tasks", list(_kappas(agreement, keys))
    yield "All annotations", list(_closeness(agreement))
    yield "Annotators against their peers: kappa", list(_raters(agreement, keys))
    yield "Weeks: kappa", list(_weeks(agreement, keys))


def _kappas(agreement: Report, keys: Sequence[str]) -> Iterable[Sequence[str]]:
    yield ["attribute", *(selection.value for selection in Selection), "samples", "ratings"]
    for key in keys:
        estimates = [agreement.selections[selection][key] for selection in Selection]
        total = agreement.selections[Selection.ALL][key]
        yield [key, *map(_with_interval, estimates), str(total.samples), str(total.ratings)]
    further = (
        ("(preference)", agreement.preference),
        ("(ranking)", agreement.ranking),
        ("(safety)", agreement.safety),
    )
    for name, estimate in further:
        if estimate.samples:
            yield [name, "", _with_interval(estimate), "", str(estimate.samples), str(estimate.ratings)]


def _with_interval(estimate: Agreement) -> str:
    if estimate.interval is None:
        return number(estimate.kappa)
    return f"{number(estimate.kappa)} [{number(estimate.interval[0])}, {number(estimate.interval[1])}]"


def _closeness(agreement: Report) -> Iterable[Sequence[str]]:
    yield ["attribute", "alpha ordinal", "alpha interval", "spearman", "exact", "within one"]
    for key, alpha in agreement.alpha.items():
        shares = (measure[key] for measure in (agreement.spearman, agreement.exact, agreement.within_one))
        yield [key, *map(number, (alpha.ordinal, alpha.interval, *shares))]


def _raters(agreement: Report, keys: Sequence[str]) -> Iterable[Sequence[str]]:
    yield ["annotator", "shared", *keys]
    for rater in agreement.annotators:
        yield [rater.annotator.username, str(rater.shared), *(number(rater.kappa[key]) for key in keys)]


def _weeks(agreement: Report, keys: Sequence[str]) -> Iterable[Sequence[str]]:
    yield ["week of", "samples", *keys]
    for week in agreement.weeks:
        yield [week.week.isoformat(), str(week.samples), *(number(week.kappa[key]) for key in keys)]


def number(measure: float | None) -> str:
    return "undefined" if measure is None else f"{measure:.3f}"


def _aligned(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Yields the rows as lines, with the first column aligned to the left and the others to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        yield "  ".join([first.ljust(widths[0]), *cells]).rstrip()
