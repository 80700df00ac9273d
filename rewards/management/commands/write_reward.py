"""write_reward MODEL: stores a model once more as one reward that other software loads, in `reward/` beside it."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotator.infrastructure.refusals import Refusal
from rewards.management.models import named_model
from rewards.model_downloads.writing import write_reward


class Command(BaseCommand):
    help = "Writes reward/ for a model, given by its id, that was trained before runs wrote it themselves."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("model", type=int, help="the reward model's id")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self.stdout.write(str(write_reward(named_model(options["model"]))))
        except Refusal as refusal:
            raise CommandError(str(refusal)) from refusal
