"""take_back_import PROJECT IMPORT: removes the tasks that an import made, as long as nobody has rated any of them."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from annotator.infrastructure.db.clock import database_now
from annotator.management.projects import ProjectCommand, named_project
from annotator.models import Import
from annotator.stages.importing import withdrawal, withdrawal_preview

LISTED = 20


class Command(ProjectCommand):
    help = "Removes the tasks that an import made, as long as nobody has rated any of them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "number", nargs="?", type=int, help="the import's number; without it, the latest imports are listed"
        )
        parser.add_argument("--dry-run", action="store_true", help="say what would be removed, and change nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        imports = Import.objects.filter(project=named_project(options["project"]))
        if options["number"] is None:
            for row in imports.order_by("-pk")[:LISTED]:
                suffix = f", taken back {row.taken_back_at:%Y-%m-%d}" if row.taken_back_at else ""
                self.stdout.write(f"{row.pk}  {row.made_at:%Y-%m-%d %H:%M}  {row}  {row.created} tasks{suffix}")
            return
        imported = imports.filter(pk=options["number"]).first()
        if imported is None:
            raise CommandError(f"There is no import {options['number']} in this project.")
        if options["dry_run"]:
            preview = withdrawal_preview(imported)
            self.stdout.write(
                f"Dry run, nothing is changed: {preview.tasks} tasks would go, with {preview.labels} labels, "
                f"{preview.imported_annotations} imported annotations and {preview.leases} leases; "
                f"{preview.rated} are rated"
            )
            return
        done = withdrawal.finish(withdrawal.begin(imported, by=None, now=database_now()), now=database_now())
        self.stdout.write(f"Import {done.pk} is taken back: {done.removed} tasks removed")
