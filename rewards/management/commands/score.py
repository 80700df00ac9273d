"""score PROJECT: sends the champion over the project's responses."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.refusals import Refusal
from annotator.management.projects import named_project
from rewards import scoring


class Command(BaseCommand):
    help = "Lets the score workers score every response that the champion has not scored yet."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's slug")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            model = scoring.champion(named_project(options["project"]))
            scoring.start(model, now=database_now())
        except Refusal as refused:
            raise CommandError(str(refused)) from refused
        progress = scoring.progress(model)
        self.stdout.write(f"{model} scores {progress.total - progress.scored} responses.")
