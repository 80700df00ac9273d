"""import_tasks PROJECT FILE: imports tasks from a file, or from standard input for `-`."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotator.db.clock import database_now
from annotator.importing import import_rows
from annotator.management.projects import named_project
from annotator.refusals import Refusal

SHOWN = 50


class Command(BaseCommand):
    help = "Imports JSON lines, a JSON list, CSV or Parquet, plain or gzipped. The same file twice changes nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's slug")
        parser.add_argument("file", help="a path, or - for standard input")
        parser.add_argument("--dry-run", action="store_true", help="check and count, write nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        project, dry_run = named_project(options["project"]), options["dry_run"]
        try:
            if options["file"] == "-":
                result = import_rows(project, sys.stdin.buffer, now=database_now(), dry_run=dry_run)
            else:
                with Path(options["file"]).open("rb") as file:
                    result = import_rows(project, file, now=database_now(), dry_run=dry_run, file_name=options["file"])
        except Refusal as refusal:
            raise CommandError(str(refusal)) from refusal
        except OSError as error:
            raise CommandError(f"{options['file']} cannot be read: {error.strerror}.") from error
        rows = result.rejected[:SHOWN]
        for row in rows:
            self.stderr.write(f"line {row.line}: {row.error}")
        if more := result.rejected_total - len(rows):
            self.stderr.write(f"... and {more} more")
        before, would = ("Dry run, nothing is written: ", "would be ") if dry_run else ("", "")
        rejected = result.rejected_total
        self.stdout.write(
            f"{before}{result.created} tasks {would}created, {result.existing} existing, {rejected} rows rejected"
        )
        # The other rows are in, but a script must not go on as if all of them were.
        if rejected:
            raise SystemExit(1)
