"""Compares the methods of alignment in a world where a program knows what is good, and our DPO with TRL's DPOTrainer.

`python -m benchmarks.bench_aligning [world] [speed] [tuning] [--seeds 5] [--pairs 1200] ...`. The world is
benchmarks/aligning/world.py; `tuning` tries the methods' settings in worlds of other seeds. For the speed, small models
with random weights train on random tokens of HelpSteer2's lengths; TRL runs in an environment of its own (TRL_PYTHON,
or one made in var/peers/trl). Both trainers' time includes the reference's log-probabilities.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from transformers.utils import logging

from benchmarks.aligning.contest import GRID, METHODS, TUNING, make_contest, summary
from benchmarks.aligning.speed import Bench, compare, largest_difference, make_policy, speed_pairs
from benchmarks.training.pairs import tokens_of
from rewards.learning.inference import choose_device
from rewards.learning.progress import Progress

PARTS = ("world", "speed", "tuning")
SAME = 16  # pairs whose losses are compared, two batches


def world(*, seeds: int, pairs: int) -> None:
    verdicts: dict[str, list[dict[str, float]]] = {name: [] for name in ("start", *METHODS[pairs])}
    with tempfile.TemporaryDirectory(prefix="rewardloop-bench-") as folder:
        for seed in range(seeds):
            began = time.process_time()
            contest = make_contest(Path(folder), seed=seed, pairs=pairs)
            verdicts["start"].append(contest.start())
            for method, settings in METHODS[pairs].items():
                verdicts[method].append(contest.verdict(method, settings))
            latest = {name: round(of[-1]["quality"], 3) for name, of in verdicts.items()}
            say({"seed": seed, **latest, "processor_seconds": round(time.process_time() - began)})
    say(summary(verdicts))


def tuning(*, pairs: int) -> None:
    """Says how good each setting of each method is in worlds of other seeds."""
    qualities: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="rewardloop-bench-") as folder:
        for seed in TUNING:
            contest = make_contest(Path(folder), seed=seed, pairs=pairs)
            contest.start()
            for method, grid in GRID.items():
                for settings in grid:
                    key = json.dumps({"method": method, **settings})
                    qualities.setdefault(key, []).append(contest.verdict(method, settings)["quality"])
                    say({**json.loads(key), "seed": seed, "quality": round(qualities[key][-1], 3)})
    for key, of in qualities.items():
        say({**json.loads(key), "quality": round(statistics.mean(of), 4), "seeds": len(of)})


def speed(*, kinds: list[str], size: str, pairs: int, repeats: int, threads: int) -> None:
    device = choose_device("auto")
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    say({"device": name, "threads": threads, "torch": torch.__version__, "size": size})
    for kind in kinds:
        with tempfile.TemporaryDirectory(prefix="rewardloop-bench-") as folder:
            bench = Bench(make_policy(kind, size, Path(folder) / "model"), Path(folder), device, threads)
            drawn = speed_pairs(pairs)
            say({"model": kind, "pairs": pairs, "tokens": tokens_of(drawn)})
            say({"largest difference of losses": largest_difference(bench, drawn[:SAME])})
            for trainer, values in compare(bench, drawn, repeats=repeats).items():
                say({"trainer": trainer, **values})


def say(values: dict[str, Any]) -> None:
    print(json.dumps(values), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="The methods of alignment, and DPO beside TRL's.")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[], metavar="{world,speed,tuning}")
    parser.add_argument("--seeds", type=int, default=5, choices=range(2, 11))
    parser.add_argument("--pairs", type=int, default=1_200, choices=list(METHODS), help="comparisons to learn from")
    parser.add_argument("--size", default="2m", choices=["2m", "10m", "1b", "8b"])
    parser.add_argument("--speed-pairs", type=int, default=48)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--kinds", nargs="+", default=["qwen3", "llama"], choices=["qwen3", "llama"])
    options = parser.parse_args()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    Progress.tell = quiet  # type: ignore[method-assign]
    parts = options.parts or PARTS[:2]
    if "tuning" in parts:
        tuning(pairs=options.pairs)
    if "world" in parts:
        world(seeds=options.seeds, pairs=options.pairs)
    if "speed" in parts:
        speed(
            kinds=options.kinds, size=options.size, pairs=options.speed_pairs, repeats=options.repeats,
            threads=options.threads,
        )  # fmt: skip


def quiet(self: Progress, event: str, **values: Any) -> None:
    """Stands in for the progress on standard output, which would hide the figures."""


if __name__ == "__main__":
    main()
