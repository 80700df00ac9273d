"""Takes the artifacts of VAR_DIR to the object store, for an installation that begins to use one."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotator.infrastructure.storage import artifacts, store
from annotator.infrastructure.storage.working_copies import name_of


class Command(BaseCommand):
    help = (
        "Takes the artifacts of VAR_DIR to the object store that ARTIFACTS_URL names: all of them, or those named. "
        "Stop the workers first. It can be repeated; what is stored already is not sent again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("places", nargs="*", metavar="PLACE", help="such as policy-bases/NAME")

    def handle(self, *args: Any, **options: Any) -> None:
        if not store.is_remote():
            raise CommandError("ARTIFACTS_URL names no object store. Set it to s3://BUCKET, gs://BUCKET or az://NAME.")
        artifacts.require_ours()
        top = Path(settings.ARTIFACTS)
        for place in [top / name for name in options["places"]] or _all(top):
            if not place.resolve().is_relative_to(top.resolve()) or not place.exists():
                raise CommandError(f"There is no {place.relative_to(top)} under {top}.")
            store.put(place, leave=store.is_of_work if place.parent.name == "runs" else store.is_hidden)
            self.stdout.write(f"{name_of(place)} is stored")


def _all(top: Path) -> list[Path]:
    """Returns what the features put as one: a folder each, and those of snapshots by their project."""
    folders = [place for kind in top.glob("[!.]*") if kind.is_dir() for place in kind.glob("[!.]*")]
    snapshots = {place for place in folders if place.parent.name == "snapshots"}
    whole = [place for place in folders if place not in snapshots]
    return sorted([*whole, *(one for project in snapshots for one in project.glob("[!.]*"))])
