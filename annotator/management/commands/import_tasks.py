"""import_tasks PROJECT FILE...: imports tasks from files and folders, or from standard input for `-`."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.core.management.base import CommandError

from annotator.infrastructure.db.clock import database_now
from annotator.management.projects import ProjectCommand, named_project
from annotator.models import Project
from annotator.stages.importing import ImportResult, hub_files, import_rows
from annotator.stages.importing.batches import few_garbage_collections
from annotator.stages.importing.mappings import ColumnMapping, fitting_only, mapping_of_text
from annotator.stages.importing.sources import ENDINGS

SHOWN = 50
DESCRIPTIONS = {"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json"}
"""Files that `datasets` writes beside the rows."""


def _mapping(name: str | None) -> ColumnMapping | None:
    """Reads the mapping from its file. Raises BadMapping, and CommandError for a file that cannot be read."""
    if name is None:
        return None
    try:
        return mapping_of_text(Path(name).read_bytes())
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}.") from error


class Command(ProjectCommand):
    help = (
        "Imports text files, Parquet, Arrow and Excel, plain or gzipped (docs/formats.md). Of a folder, every such "
        "file is imported, and of hub:OWNER/NAME those of a data set of the Hub. The same file twice changes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "files", nargs="+", metavar="file", help="a file, a folder or hub:OWNER/NAME; - is standard input"
        )
        parser.add_argument("--mapping", metavar="FILE", help="JSON that names the column for each field of a task")
        parser.add_argument(
            "--fitting-only", action="store_true", help="leave out ratings that do not fit instead of their whole rows"
        )
        parser.add_argument("--dry-run", action="store_true", help="check and count, write nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        project, dry_run = named_project(options["project"]), options["dry_run"]
        how: dict[str, Any] = {"now": database_now(), "dry_run": dry_run}
        total = ImportResult()
        how["mapping"] = _mapping(options["mapping"])
        if options["fitting_only"]:
            how["mapping"] = fitting_only(how["mapping"])
        with TemporaryDirectory() as fetched, few_garbage_collections():
            names = [name for given in options["files"] for name in _files(given, Path(fetched))]
            for name in names:
                result = self._imported(project, name, how)
                self._report(result, name.removeprefix(f"{fetched}/") if len(names) > 1 else "")
                for count in ("created", "existing", "rejected_total", "ratings_added", "ratings_left_out"):
                    setattr(total, count, getattr(total, count) + getattr(result, count))
        before, would = ("Dry run, nothing is written: ", "would be ") if dry_run else ("", "")
        rejected = total.rejected_total
        self.stdout.write(
            f"{before}{total.created} tasks {would}created, {total.existing} existing, {rejected} rows rejected"
        )
        if total.ratings_added or total.ratings_left_out:
            left_out = f", {total.ratings_left_out} left out" if total.ratings_left_out else ""
            self.stdout.write(f"{before}{total.ratings_added} ratings {would}added{left_out}")
        # The other rows are in, but a script must not go on as if all of them were.
        if rejected:
            raise SystemExit(1)

    def _imported(self, project: Project, name: str, how: dict[str, Any]) -> ImportResult:
        if name == "-":
            return import_rows(project, sys.stdin.buffer, **how)
        try:
            with Path(name).open("rb") as file:
                return import_rows(project, file, file_name=name, **how)
        except OSError as error:
            raise CommandError(f"{name} cannot be read: {error.strerror}.") from error

    def _report(self, result: ImportResult, name: str) -> None:
        if name:
            self.stdout.write(f"{name}: {result.created} new, {result.existing} existing")
        of = f"{name}, " if name else ""
        rows = result.rejected[:SHOWN]
        for row in rows:
            self.stderr.write(f"{of}line {row.line}: {row.error}")
        for note in result.notes:
            self.stderr.write(f"{of}from line {note.line} on: {note.text}")
        if more := result.rejected_total + result.ratings_left_out - len(rows):
            self.stderr.write(f"... and {more} more")


def _files(given: str, fetched: Path) -> list[str]:
    """Returns a file's name, or those of the files of rows in a folder, in the order of their names.

    What is named as hub:OWNER/NAME is written to a folder in `fetched` first.
    """
    folder = Path(given)
    if given.startswith(hub_files.PREFIX):
        folder = fetched / str(len(list(fetched.iterdir())))
        folder.mkdir()
        hub_files.fetch(given, folder)
    elif given == "-" or not folder.is_dir():
        return [given]
    files = [file for file in sorted(folder.rglob("*")) if _has_rows(file.relative_to(folder)) and file.is_file()]
    if not files:
        raise CommandError(f"{given} holds no file of rows: they end with {', '.join(sorted(ENDINGS))}.")
    return [str(file) for file in files]


def _has_rows(file: Path) -> bool:
    """Returns whether a file of a data set holds rows, and not what describes them."""
    is_hidden = any(part.startswith(".") for part in file.parts)
    return not is_hidden and file.name.removesuffix(".gz").endswith(ENDINGS) and file.name not in DESCRIPTIONS
