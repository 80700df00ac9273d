"""verify_audit FILE...: checks that archived months of the audit are as they were written."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotator import audit_months
from annotator.refusals import Refusal


class Command(BaseCommand):
    help = "Computes the hashes of archived months again, and compares them with what was recorded."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE")

    def handle(self, *args: Any, **options: Any) -> None:
        broken = 0
        for path in options["files"]:
            try:
                checked = audit_months.check(path)
            except (Refusal, OSError) as failed:
                broken += 1
                self.stderr.write(str(failed))
            else:
                self.stdout.write(f"{path}: {checked.entries} entries of {checked.month}, as they were written")
        if broken:
            raise CommandError(f"{broken} of {len(options['files'])} files failed.")
