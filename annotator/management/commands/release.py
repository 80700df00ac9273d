"""release PROJECT: makes a release of the project's data, copies it to a folder, takes it to the Hugging Face Hub."""

import shutil
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.storage import store
from annotator.infrastructure.storage.hub import require_ready
from annotator.management.projects import ProjectCommand, named_project
from annotator.models import Project, Release
from annotator.outputs.releases import hub_pushes, release_jobs
from annotator.outputs.releases.particulars import LICENSES, UNKNOWN, Particulars

TEXTS = {
    "title": "empty: the project's name",
    "license-text": "what the card says about the licence",
    "intended-use": "what the card says about the use of the data",
    "limits": "what the card says about known limits",
    "notes": "what the card says first",
}


class Command(ProjectCommand):
    help = "Freezes the project's data as a numbered release, a folder that datasets.load_dataset loads."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--number", type=int, help="take this release, which exists, instead of making one")
        parser.add_argument("--license", default=UNKNOWN, help=", ".join(LICENSES))
        for name, meaning in TEXTS.items():
            parser.add_argument(f"--{name}", default="", help=meaning)
        parser.add_argument(
            "--leave-out-failing", action="store_true", help="leave out tasks with a text that must not be published"
        )
        parser.add_argument(
            "--rubric-version", type=int, help="only labels and ratings made under this version of the rubric"
        )
        parser.add_argument("--to", help="copy the files to this folder, which must be empty or not exist yet")
        parser.add_argument("--push", metavar="REPO", help="take the release to this dataset of the Hub: NAME/DATASET")
        parser.add_argument("--public", action="store_true", help="let everybody read a dataset that --push makes")

    def handle(self, *args: Any, **options: Any) -> None:
        project = named_project(options["project"])
        try:
            if options["push"]:
                require_ready()
            target = _empty_folder(options["to"])
            release = _release(project, options)
            folder = store.bring(release_jobs.folder_of(release, None))
            try:
                self.stdout.write(f"release {release.number}: {folder}")
                if target:
                    shutil.copytree(folder, target, dirs_exist_ok=True)
                    self.stdout.write(f"copied to {target}")
                if options["push"]:
                    self.stdout.write(hub_pushes.push(release, options["push"], public=options["public"]))
            finally:
                store.forget_here(folder)  # this host may have no worker that tidies
        except OSError as error:
            raise CommandError(f"{error.filename or options['to']} cannot be written: {error.strerror}.") from error


def _empty_folder(name: str | None) -> Path | None:
    """Returns the folder to copy to. Looked at first: a release that cannot be copied need not be made."""
    if name is None:
        return None
    folder = Path(name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CommandError(f"{folder} is not empty. Name a folder that is empty or does not exist yet.")
    return folder


def _release(project: Project, options: dict[str, Any]) -> Release:
    if options["number"] is not None:
        release = release_jobs.releases_of(project).filter(number=options["number"]).first()
        if release is None:
            raise CommandError(f"{project.slug} has no release {options['number']}.")
        return release
    texts = {name.replace("-", "_"): options[name.replace("-", "_")] for name in ("license", *TEXTS)}
    others = {name: options[name] for name in ("leave_out_failing", "rubric_version")}
    particulars = Particulars(**texts, **others)
    release = release_jobs.wait_for(release_jobs.add(project, particulars, by=None, now=database_now()))
    if release.error:
        raise CommandError(release.error)
    return release
