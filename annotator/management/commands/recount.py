"""recount PROJECT: counters, states and labels, recomputed from assignments and annotations."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from annotator import assignment
from annotator.management.projects import named_project


class Command(BaseCommand):
    help = "Recomputes every task's counters, state and labels; needed after the protocol's numbers have changed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's slug")

    def handle(self, *args: Any, **options: Any) -> None:
        counted = assignment.recount(named_project(options["project"]), now=timezone.now())
        self.stdout.write(f"{counted} tasks recomputed")
