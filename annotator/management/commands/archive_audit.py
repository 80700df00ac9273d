"""archive_audit FOLDER: writes old months of the audit to files, and takes them out of the database."""

from argparse import ArgumentParser, ArgumentTypeError
from datetime import date
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotator import audit_months
from annotator.db.clock import database_now
from annotator.refusals import Refusal


def month(text: str) -> date:
    try:
        return date.fromisoformat(f"{text}-01")
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no month: write it like 2026-09") from None


class Command(BaseCommand):
    help = "Writes each month of the audit before the given one to a file of its own, and drops it from the database."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="an existing folder")
        parser.add_argument("--before", type=month, required=True, metavar="YYYY-MM", help="the first month that stays")

    def handle(self, *args: Any, **options: Any) -> None:
        folder = options["folder"]
        if not folder.is_dir():
            raise CommandError(f"There is no folder {folder}: make it first.")
        try:
            for row in audit_months.archive(folder, before=options["before"], now=database_now()):
                self.stdout.write(f"{folder / row.file}: {row.entries} entries, SHA-256 {row.sha256}")
        except Refusal as refused:
            raise CommandError(str(refused)) from refused
        except OSError as failed:
            raise CommandError(f"{failed}. The month stays in the database.") from failed
