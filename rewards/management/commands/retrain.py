"""retrain PROJECT: starts a training run; --wait follows it to its end."""

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotator.infrastructure.refusals import Refusal
from annotator.management.projects import named_project
from rewards.models import ACTIVE_STATES, RunState, TrainingRun
from rewards.reasons import in_english
from rewards.runs import runs
from rewards.runs.new_labels import unchanged_since

POLL_SECONDS = 1.0


class Command(BaseCommand):
    help = "Takes a snapshot of the labels and trains a reward model on it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's slug")
        parser.add_argument("--reason", default="requested on the command line")
        parser.add_argument("--wait", action="store_true", help="wait until the run ends")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            project = named_project(options["project"])
            unchanged = unchanged_since(project)
            run = runs.request(project, reason=options["reason"])
        except Refusal as refused:
            raise CommandError(str(refused)) from refused
        self.stdout.write(f"Run {run.pk} is queued.")
        if unchanged:
            self.stdout.write(f"Nothing has been labelled since version {unchanged} was trained.")
        if options["wait"]:
            self._follow(run)

    def _follow(self, run: TrainingRun) -> None:
        last_state = ""
        while run.state in ACTIVE_STATES:
            time.sleep(POLL_SECONDS)
            run.refresh_from_db()
            if run.state != last_state:
                self.stdout.write(f"Run {run.pk}: {run.get_state_display()}")
                last_state = run.state
        if run.state in (RunState.FAILED, RunState.CANCELLED):
            raise CommandError(f"Run {run.pk} {run.state}: {run.error}")
        verdict = run.verdict
        interval = f"[{verdict['low']:.3f}, {verdict['high']:.3f}]"
        self.stdout.write(f"{in_english(verdict['reason'])} Gain {verdict['gain']:.3f} {interval}")
