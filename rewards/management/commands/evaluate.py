"""evaluate MODEL DATA: evaluates a reward model on labelled rows or a benchmark; stores and prints the metrics."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotator.infrastructure.refusals import Refusal
from rewards.evaluation import evaluation
from rewards.management.models import named_model


class Command(BaseCommand):
    help = (
        "Evaluates a reward model, by its id, on a file or a data set of the Hub: rows like a snapshot's "
        "validation.jsonl, or RewardBench, RewardBench 2, RM-Bench, JudgeBench or preference pairs as published."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("model", type=int, help="the reward model's id")
        parser.add_argument("data", help="a file (JSON lines, a JSON list, Parquet; also gzipped), or hub:NAME@SPLIT")
        parser.add_argument("--name", default="", help="what the evaluation is called; the file's name by default")

    def handle(self, *args: Any, **options: Any) -> None:
        model = named_model(options["model"])
        try:
            row = evaluation.evaluate(model, str(options["data"]), name=options["name"])
        except Refusal as refused:
            raise CommandError(str(refused)) from refused
        self.stdout.write(json.dumps(row.metrics, indent=2))
