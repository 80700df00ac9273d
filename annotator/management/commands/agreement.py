"""agreement PROJECT: prints how far the annotators agree, as tables or as JSON."""

import json
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder

from annotator.analysis.agreement.reports import Agreement, AgreementReport, as_json, report
from annotator.analysis.agreement.totals import rebuild, refresh
from annotator.infrastructure.db.clock import database_now
from annotator.management.projects import ProjectCommand, named_project
from annotator.statistics.pair_counts import Selection


class Command(ProjectCommand):
    help = (
        "Prints quadratic-weighted kappa per attribute for the first three, all and the kept annotations, with 95 % "
        "intervals; then the other measures, annotators against their peers, and weeks."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
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


def _tables(agreement: AgreementReport) -> Iterable[tuple[str, list[list[str]]]]:
    keys = list(agreement.all)
    rows = [["attribute", *(selection.value for selection in Selection), "samples", "ratings"]]
    for key in keys:
        estimates = [agreement.selections[selection][key] for selection in Selection]
        rows.append([key, *map(_with_interval, estimates), *_counts(agreement.all[key])])
    for name, one in (
        ("(preference)", agreement.preference),
        ("(ranking)", agreement.ranking),
        ("(safety)", agreement.safety),
    ):
        if one.samples:
            rows.append([name, "", _with_interval(one), "", *_counts(one)])
    yield "Weighted kappa, with 95 % intervals over tasks", rows
    shares = (agreement.spearman, agreement.exact, agreement.within_one)
    yield (
        "All annotations",
        [["attribute", "alpha ordinal", "alpha interval", "spearman", "exact", "within one"]]
        + [
            [key, *map(number, (alpha.ordinal, alpha.interval, *(share[key] for share in shares)))]
            for key, alpha in agreement.alpha.items()
        ],
    )
    raters = [(rater.annotator.username, rater.shared, rater.kappa) for rater in agreement.annotators]
    weeks = [(week.week.isoformat(), week.samples, week.kappa) for week in agreement.weeks]
    for title, head, lines in (
        ("Annotators against their peers: kappa", ["annotator", "shared"], raters),
        ("Weeks: kappa", ["week of", "samples"], weeks),
    ):
        of_each = [[name, str(count), *(number(kappa[key]) for key in keys)] for name, count, kappa in lines]
        yield title, [[*head, *keys], *of_each]


def _counts(estimate: Agreement) -> tuple[str, str]:
    return str(estimate.samples), str(estimate.ratings)


def _with_interval(estimate: Agreement) -> str:
    if estimate.interval is None:
        return number(estimate.kappa)
    return f"{number(estimate.kappa)} [{number(estimate.interval[0])}, {number(estimate.interval[1])}]"


def number(measure: float | None) -> str:
    return "undefined" if measure is None else f"{measure:.3f}"


def _aligned(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Yields the rows as lines, with the first column aligned to the left and the others to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        yield "  ".join([first.ljust(widths[0]), *cells]).rstrip()
