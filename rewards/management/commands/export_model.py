"""export_model MODEL: copies a model with its card to a folder, takes it to the Hugging Face Hub."""

import shutil
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotator.infrastructure import audit
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.storage.hub import require_ready
from rewards.management.models import named_model
from rewards.model_downloads import hub
from rewards.model_downloads.files import PARTS, files_of, part_of
from rewards.model_downloads.licenses import MODEL_LICENSES, set_license


class Command(BaseCommand):
    help = "Takes a reward model, given by its id, to a folder or to the Hugging Face Hub."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("model", type=int, help="the reward model's id")
        parser.add_argument("--to", help="copy the files to this folder, which must be empty or not exist yet")
        parser.add_argument("--part", choices=PARTS, default="", help="copy the card and this part only")
        parser.add_argument("--push", metavar="REPO", help="take the model to this repository of the Hub: NAME/MODEL")
        parser.add_argument("--public", action="store_true", help="let everybody read a repository that --push makes")
        parser.add_argument("--license", help=f"state the model's licence first: {', '.join(MODEL_LICENSES)}")
        parser.add_argument("--license-text", default="", help="what the card says about the licence")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["to"] and not options["push"]:
            raise CommandError("Say where to take it: --to FOLDER, --push REPO, or both.")
        model = named_model(options["model"])
        try:
            if options["push"]:
                require_ready()
            if options["license"]:
                set_license(model, options["license"], options["license_text"])
            if options["to"]:
                folder = Path(options["to"])
                part = options["part"]
                if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                    raise CommandError(f"{folder} is not empty. Name a folder that is empty or does not exist yet.")
                for file in part_of(files_of(model), part):
                    target = folder / file.path
                    target.parent.mkdir(parents=True, exist_ok=True)
                    if isinstance(file.content, Path):
                        shutil.copy(file.content, target)
                    else:
                        target.write_bytes(file.content)
                audit.record(
                    "model.downloaded", f"model version {model.version}", project=model.project, part=part or "all"
                )
                self.stdout.write(f"copied to {folder}")
            if options["push"]:
                self.stdout.write(hub.push(model, options["push"], public=options["public"]))
        except Refusal as refusal:
            raise CommandError(str(refusal)) from refusal
        except OSError as error:
            raise CommandError(f"{error.filename or options['to']} cannot be written: {error.strerror}.") from error
