"""quality PROJECT: assesses every annotator's work again and prints what stands out."""

import os
from argparse import ArgumentParser
from typing import Any

from annotator.analysis.agreement import totals
from annotator.analysis.quality import assessment
from annotator.analysis.quality.findings import Finding, findings, most_flagged_first
from annotator.infrastructure.db.clock import database_now
from annotator.management.projects import ProjectCommand, named_project


class Command(ProjectCommand):
    help = "Checks each annotator's work and prints what stands out, for people to judge."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--background", action="store_true", help="run with low priority, and print nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        project, now = named_project(options["project"]), database_now()
        if options["background"]:
            os.nice(10)
        totals.refresh(project, now=now)
        assessment.assess(project, now=now)
        if options["background"]:
            return
        found = findings(project, most_flagged_first(project))
        self.stdout.write(f"{'annotator':<20}{'tasks':>8}{'kappa':>8}{'scatter':>9}{'reliability':>13}  flags")
        for finding in found:
            self.stdout.write(_line(finding))
        for finding in found:
            for flag in finding.flags:
                self.stdout.write(f"{finding.annotator.username}: {flag.title}. {flag.sentence}")


def _line(finding: Finding) -> str:
    numbers = f"{_number(finding.measures['kappa']):>8}{_number(finding.scatter):>9}{_number(finding.reliability):>13}"
    kinds = [flag.kind.value for flag in finding.flags] or ["too few to judge"] * finding.is_too_few
    flags = ", ".join(kinds) + (" (excluded)" if finding.exclusion else "")
    return f"{finding.annotator.username:<20}{finding.annotations:>8}{numbers}  {flags}".rstrip()


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
