"""Marks the folder for artifacts that this process sees as the installation's."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from annotator.infrastructure.storage import artifacts


class Command(BaseCommand):
    help = "Marks VAR_DIR/artifacts as this installation's folder, after a restore or when the folder has moved."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--only-new", action="store_true", help="change nothing if the installation already has its folder"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["only_new"]:
            # At every start: where another folder is mounted, marking it too would hide that the artifacts are missing.
            artifacts.mark_new()
            artifacts.report_at_start()
            return
        artifacts.adopt()
        place = settings.ARTIFACTS_STORE or settings.ARTIFACTS
        self.stdout.write(f"{place} is the installation's folder for artifacts.")
