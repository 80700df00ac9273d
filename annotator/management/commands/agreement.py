"""agreement PROJECT: how far the annotators agree, as tables or JSON."""

import json
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from typing import Any

from django.core.management.base import BaseCommand
from django.core.serializers.json import DjangoJSONEncoder

from annotator.agreement import Agreement, Report, Selection, rebuild, refresh_until_done, report
from annotator.agreement.report_json import told
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
            self.stderr.write(f"{rebuild(project, now=now)} tasks counted")
        refresh_until_done(project, now=now)
        found = report(project, now=now)
        if options["json"]:
            told_of = told(found, name=lambda user: user.username)
            self.stdout.write(json.dumps(told_of, cls=DjangoJSONEncoder, indent=2))
            return
        for title, rows in _tables(found):
            self.stdout.write(f"{title}\n" + "\n".join(_aligned(rows)) + "\n")


def _tables(found: Report) -> Iterable[tuple[str, list[Sequence[str]]]]:
    keys = list(found.closeness)
    yield "Weighted kappa, with 95 % intervals over tasks", list(_kappas(found, keys))
    yield "All annotations", list(_closeness(found))
    yield "Annotators against their peers: kappa", list(_raters(found, keys))
    yield "Weeks: kappa", list(_weeks(found, keys))


def _kappas(found: Report, keys: Sequence[str]) -> Iterable[Sequence[str]]:
    yield ["attribute", *(selection.value for selection in Selection), "samples", "ratings"]
    for key in keys:
        each = [found.selections[selection][key] for selection in Selection]
        total = found.selections[Selection.ALL][key]
        yield [key, *(_with_interval(one) for one in each), str(total.samples), str(total.ratings)]
    others = (
        ("(preference)", found.preference.agreement),
        ("(ranking)", found.ranking.agreement),
        ("(safety)", found.safety.agreement),
    )
    for name, one in others:
        if one.samples:
            yield [name, "", _with_interval(one), "", str(one.samples), str(one.ratings)]


def _with_interval(found: Agreement) -> str:
    if found.interval is None:
        return number(found.kappa)
    return f"{number(found.kappa)} [{number(found.interval[0])}, {number(found.interval[1])}]"


def _closeness(found: Report) -> Iterable[Sequence[str]]:
    yield ["attribute", "alpha ordinal", "alpha interval", "spearman", "exact", "within one"]
    for key, each in found.closeness.items():
        measures = (each.alpha_ordinal, each.alpha_interval, each.spearman, each.exact, each.within_one)
        yield [key, *(number(measure) for measure in measures)]


def _raters(found: Report, keys: Sequence[str]) -> Iterable[Sequence[str]]:
    yield ["annotator", "shared", *keys]
    for each in found.raters:
        yield [each.user.username, str(each.shared), *(number(each.kappa[key]) for key in keys)]


def _weeks(found: Report, keys: Sequence[str]) -> Iterable[Sequence[str]]:
    yield ["week of", "samples", *keys]
    for each in found.weeks:
        yield [each.monday.isoformat(), str(each.samples), *(number(each.kappa[key]) for key in keys)]


def number(measure: float | None) -> str:
    return "undefined" if measure is None else f"{measure:.3f}"


def _aligned(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """The first column to the left, the others to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        yield "  ".join([first.ljust(widths[0]), *cells]).rstrip()
