"""import_tasks PROJECT FILE: imports tasks from a file, or from standard input for `-`."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotator.db.clock import database_now
from annotator.importing import import_rows
from annotator.importing.mappings import ColumnMapping, mapping_of_text
from annotator.management.projects import named_project
from annotator.refusals import Refusal

SHOWN = 50


def _mapping(name: str | None) -> ColumnMapping | None:
    """Reads the mapping from its file. Raises BadMapping, and CommandError for a file that cannot be read."""
    if name is None:
        return None
    try:
        return mapping_of_text(Path(name).read_bytes())
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}.") from error


class Command(BaseCommand):
    help = "Imports JSON lines, a JSON list, CSV or Parquet, plain or gzipped. The same file twice changes nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's slug")
        parser.add_argument("file", help="a path, or - for standard input")
        parser.add_argument("--mapping", metavar="FILE", help="JSON that names the column for each field of a task")
        parser.add_argument("--dry-run", action="store_true", help="check and count, write nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        project, dry_run = named_project(options["project"]), options["dry_run"]
        name = options["file"]
        try:
            how: dict[str, Any] = {"now": database_now(), "dry_run": dry_run, "mapping": _mapping(options["mapping"])}
            if name == "-":
                result = import_rows(project, sys.stdin.buffer, **how)
            else:
                with Path(name).open("rb") as file:
                    result = import_rows(project, file, file_name=name, **how)
        except Refusal as refusal:
            raise CommandError(str(refusal)) from refusal
        except OSError as error:
            raise CommandError(f"{name} cannot be read: {error.strerror}.") from error
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
