"""recount PROJECT: recomputes counters, states and labels from assignments and annotations, and counts scores."""

from argparse import ArgumentParser
from itertools import chain
from typing import Any

from django.core.management.base import CommandError

from annotator.infrastructure.db.clock import database_now
from annotator.management.projects import ProjectCommand, named_project
from annotator.models import Project
from annotator.reading.search.criteria import champion_scores
from annotator.stages import assignment

SHOWN = 50


class Command(ProjectCommand):
    help = (
        "Recomputes every task's counters, state and labels, and the number of each model's scores; needed after the "
        "protocol's numbers have changed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--check", action="store_true", help="change nothing and print what would change")

    def handle(self, *args: Any, **options: Any) -> None:
        project = named_project(options["project"])
        if options["check"]:
            self.check_stored(project)
            return
        counted = assignment.recount(project, now=database_now())
        champion_scores().recount_scores(project)
        self.stdout.write(f"{counted} tasks recomputed")

    def check_stored(self, project: Project) -> None:
        """Prints what recounting would change, without changing it.

        Raises:
            CommandError: something would change. It comes after the last difference, so that all are counted.
        """
        number = 0  # `enumerate` binds nothing where there is no difference
        differences = chain(
            assignment.differences(project, now=database_now()), champion_scores().score_count_differences(project)
        )
        for number, difference in enumerate(differences, start=1):
            if number <= SHOWN:
                self.stdout.write(str(difference))
        if number:
            raise CommandError(f"{number} differences. Run `manage.py recount {project.slug}` to correct them.")
        self.stdout.write("no differences")
