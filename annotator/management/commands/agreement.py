"""agreement PROJECT: quadratic-weighted kappa per attribute."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from annotator.agreement import Selection, agreement
from annotator.management.projects import named_project


class Command(BaseCommand):
    help = "Prints quadratic-weighted kappa per attribute for the first three, all and the kept annotations."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's slug")

    def handle(self, *args: Any, **options: Any) -> None:
        project = named_project(options["project"])
        found = {selection: agreement(project, selection) for selection in Selection}
        self.stdout.write(
            f"{'attribute':<16}" + "".join(f"{selection.value:>13}" for selection in Selection) + f"{'samples':>9}"
        )
        for key in project.attribute_keys():
            kappas = [found[selection][key].kappa for selection in Selection]
            cells = "".join(f"{'undefined' if kappa is None else format(kappa, '.3f'):>13}" for kappa in kappas)
            self.stdout.write(f"{key:<16}{cells}{found[Selection.ALL][key].samples:>9}")
