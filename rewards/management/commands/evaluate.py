"""evaluate MODEL FILE: a reward model on rows in a snapshot's format; the metrics are stored and printed."""

import hashlib
import json
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from annotator import audit
from rewards.models import Evaluation, RewardModel


class Command(BaseCommand):
    help = "Evaluates a reward model, by its id, on a file of rows like a snapshot's validation.jsonl."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("model", type=int, help="the reward model's id")
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        model = RewardModel.objects.filter(pk=options["model"]).first()
        if model is None:
            raise CommandError(f"There is no reward model {options['model']}.")
        if not options["file"].is_file():
            raise CommandError(f"There is no file {options['file']}.")
        metrics = _measured(model, options["file"].resolve())
        digest = hashlib.sha256(options["file"].read_bytes()).hexdigest()
        Evaluation.objects.update_or_create(
            reward_model=model, name=options["file"].stem, data_hash=digest, defaults={"metrics": metrics}
        )
        audit.record("model.evaluated", f"model version {model.version}", project=model.project, data=digest)
        self.stdout.write(json.dumps(metrics, indent=2))


def _measured(model: RewardModel, data: Path) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        config = {"model": str(model.directory()), "data": str(data)}
        (Path(folder) / "config.json").write_text(json.dumps(config))
        command = [sys.executable, "-m", "rewards.learning", "evaluate", folder]
        done = subprocess.run(command, cwd=settings.BASE_DIR, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CommandError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "the evaluation failed")
        return json.loads((Path(folder) / "metrics.json").read_text())
