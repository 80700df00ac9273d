"""export_labels PROJECT: writes labels or annotations to standard output or a file."""

import sys
from argparse import ArgumentParser
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from annotator.management.projects import ProjectCommand, named_project
from annotator.outputs.exporting.export_rows import export
from annotator.outputs.exporting.file_formats import FORMATS
from annotator.outputs.exporting.filters import PARAMETERS, fields_from, filters_from
from annotator.outputs.exporting.layouts import LAYOUTS


class Command(ProjectCommand):
    help = "Writes labels or annotations, row by row."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--layout", default="helpsteer2", help=", ".join(LAYOUTS))
        parser.add_argument("--format", default="jsonl", help=", ".join(FORMATS))
        for name, meaning in PARAMETERS.items():
            parser.add_argument(f"--{name.replace('_', '-')}", default=None, help=meaning)
        parser.add_argument("--gzip", action="store_true", help="pack the file")
        parser.add_argument("--output", default="-", help="a path, or - for standard output")

    def handle(self, *args: Any, **options: Any) -> None:
        project = named_project(options["project"])
        try:
            # Before the file is opened: a layout that does not exist must not empty a file that does.
            given = {name: options[name] for name in PARAMETERS if options.get(name) is not None}
            what = {name: options[name] for name in ("layout", "format", "gzip")}
            rows = export(project, **what, filters=filters_from(given), fields=fields_from(given))
            to_stdout = options["output"] == "-"
            with nullcontext(sys.stdout.buffer) if to_stdout else Path(options["output"]).open("wb") as file:
                for row in rows:
                    file.write(row)
        except OSError as error:
            raise CommandError(f"{options['output']} cannot be written: {error.strerror}.") from error
