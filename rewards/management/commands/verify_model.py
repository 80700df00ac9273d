"""verify_model MODEL: hashes the files of a reward model and of its snapshot again and names those that differ."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from rewards.management.models import named_model
from rewards.registry import registry


class Command(BaseCommand):
    help = "Checks that the files of a reward model, given by its id, and of its snapshot are unchanged."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("model", type=int, help="the reward model's id")

    def handle(self, *args: Any, **options: Any) -> None:
        model = named_model(options["model"])
        if problems := registry.verify(model):
            raise CommandError("\n".join(problems))
        self.stdout.write(f"The files of {model} are unchanged.")
