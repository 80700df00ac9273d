"""Compares pairwise training with TRL's RewardTrainer: tokens a second, seconds an epoch, losses of equal batches.

`python -m benchmarks.bench_training [--size 2m] [--pairs 400] [--repeats 3] [--compile] ...`. Small models with
random weights on Anthropic's HH pairs (HH_PAIRS, or ../shared/data/hh_pairs_train.jsonl.gz, if it is there) and on
random tokens of HelpSteer2's lengths. TRL runs in an environment of its own (TRL_PYTHON, or one made in var/peers/trl).
For both trainers tokens are those of both responses, each with its prompt, without padding. On a CUDA device both train
in bf16, and ours says which share of the device's arithmetic it uses. With --compile ours compiles its layers before
the time is taken.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers.utils import logging

from annotator.launch.install import ROOT
from benchmarks.training.pairs import (
    SIZES,
    Pair,
    drawn,
    encode,
    make_model,
    make_tokenizer,
    read_hh,
    shuffled,
    tokens_of,
)
from rewards.learning.adapters import prepare
from rewards.learning.backbones import Source
from rewards.learning.batches import Sizes
from rewards.learning.config import TrainConfig
from rewards.learning.finetune import Rows, Run, make_optimizer, take_step
from rewards.learning.inference import choose_device, predict
from rewards.learning.model import Loaded
from rewards.learning.model_loading import load_backbone
from rewards.learning.objectives import Answers, as_pairs
from rewards.learning.progress import Progress
from rewards.learning.resume_point import Place, State

PEER = ("torch==2.13.0", "transformers==5.23.0", "trl==1.16.0", "datasets==5.2.0", "accelerate==1.15.0")
BATCH = 8  # pairs; TRL's per_device_train_batch_size by default
RATE = 1e-4  # TRL's default
PLAIN: dict[str, Any] = {"lr_scheduler_type": "constant", "weight_decay": 0.0, "warmup_steps": 0}
PEERS: dict[str, dict[str, Any]] = {
    "TRL as it comes": {},
    "TRL, lengths grouped, nothing recomputed": {
        "train_sampling_strategy": "group_by_length",
        "remove_unused_columns": False,  # else the lengths
        "gradient_checkpointing": False,
    },
}
SAME = 8  # batches whose losses are compared


@dataclass(frozen=True)
class Outcome:
    """One pass over all pairs: seconds by the clock and of the processor, and the losses of the steps.

    `accuracy` is the share of the pairs held out whose better response gets the higher reward, `mfu` the share of the
    device's arithmetic that training used, and `compiling` the seconds of the steps before, which compile the layers.
    """

    seconds: float
    processor: float
    losses: list[float]
    accuracy: float | None
    mfu: float | None = None
    compiling: float = 0.0


@dataclass(frozen=True)
class Bench:
    model: Path
    scratch: Path
    device: torch.device
    threads: int
    batch: int = BATCH
    micro_tokens: int = 0
    compiles: bool = False

    def ours(self, pairs: Sequence[Pair], held_out: Sequence[Pair], *, in_order: bool = False) -> Outcome:
        torch.set_num_threads(self.threads)
        loaded = self.loaded(self.model)
        run = self.run_of(loaded, pairs)
        prepare(loaded.network, run.config)
        state = State(loaded.network, make_optimizer(run), Place(), {})
        sizes = loaded.sizes(run.fit.encoded, run.fit.units)
        steps = sizes.epoch(batch_tokens=0, batch_size=self.batch, seed=0, epoch=0)
        if in_order:  # as the peer's batches, so that the losses can be compared
            steps = [list(range(start, start + self.batch)) for start in range(0, len(pairs), self.batch)]
        compiling = self.compile(run, state, sizes, steps) if self.compiles and not in_order else 0.0
        began, used = time.monotonic(), time.process_time()
        for units in steps:
            take_step(run, state, sizes, units, steps=len(steps))
        # A GPU works on after the call that started it has returned.
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        seconds, processor = time.monotonic() - began, time.process_time() - used
        loaded.network.eval()
        return Outcome(seconds, processor, state.place.losses, accuracy(loaded, held_out), self.mfu(), compiling)

    def compile(self, run: Run, state: State, sizes: Sizes, steps: Sequence[Sequence[int]]) -> float:
        """Takes three steps, which compiles the layers; returns the seconds and forgets what was said of the steps."""
        began = time.monotonic()
        for units in steps[:3]:
            take_step(run, state, sizes, units, steps=len(steps))
        (self.scratch / "progress.jsonl").unlink()
        return time.monotonic() - began

    def run_of(self, loaded: Loaded, pairs: Sequence[Pair]) -> Run:
        config = TrainConfig(
            "-", stages=("bradley_terry",), batch_size=self.batch, learning_rate=RATE, head_learning_rate=RATE,
            weight_decay=0.0, warmup_steps=1, micro_tokens=self.micro_tokens, compile=self.compiles,
        )  # fmt: skip
        progress = self.scratch / "progress.jsonl"
        progress.unlink(missing_ok=True)
        rows = rows_of(pairs)
        return Run(config, loaded, rows, rows, (1.0,), Quiet(progress), self.scratch / "checkpoint", "bench")

    def mfu(self) -> float | None:
        lines = (self.scratch / "progress.jsonl").read_text().splitlines()
        shares = [event["mfu"] for event in map(json.loads, lines) if "mfu" in event]
        return statistics.median(shares) if shares else None

    def loaded(self, directory: Path) -> Loaded:
        loaded = load_backbone(Source(str(directory), local=True), attributes=["reward"], max_length=2_048)
        loaded.network.to(self.device)
        return loaded

    def theirs(
        self, pairs: Sequence[Pair], held_out: Sequence[Pair], settings: dict[str, Any], *, in_order: bool = False
    ) -> Outcome:
        cuda = self.device.type == "cuda"
        rows = [{"chosen_ids": p.chosen.ids, "rejected_ids": p.rejected.ids, "length": most(p)} for p in pairs]
        (self.scratch / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        job = {
            "model": str(self.model),
            "data": str(self.scratch / "pairs.jsonl"),
            "out": str(self.scratch / "out.json"),
            "scratch": str(self.scratch / "trl"),
            "save": "" if in_order else str(self.scratch / "trained"),
            "threads": self.threads,
            "in_order": in_order,
            "settings": {"bf16": cuda, "use_cpu": not cuda, "per_device_train_batch_size": self.batch, **settings},
        }
        (self.scratch / "job.json").write_text(json.dumps(job))
        script = Path(__file__).parent / "peers" / "trl.py"
        subprocess.run([peer_python(), str(script), str(self.scratch / "job.json")], check=True, capture_output=True)
        result = json.loads((self.scratch / "out.json").read_text())
        right = None if in_order else accuracy(self.loaded(self.scratch / "trained"), held_out)
        return Outcome(result["seconds"], result["processor"], result["losses"], right)


class Quiet(Progress):
    """Writes progress to the file alone, not to standard output as well."""

    def tell(self, event: str, **values: Any) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps({"event": event, **values}) + "\n")


def rows_of(pairs: Sequence[Pair]) -> Rows:
    encoded = [side for pair in pairs for side in (pair.chosen, pair.rejected)]
    units = [[row, row + 1] for row in range(0, len(encoded), 2)]
    nothing = np.full((len(encoded), 1), np.nan)
    answers = Answers(nothing, np.zeros_like(nothing), as_pairs(units), np.ones(len(units)))
    return Rows(encoded, answers, units)


def most(pair: Pair) -> int:
    return max(len(pair.chosen.ids), len(pair.rejected.ids))


def accuracy(loaded: Loaded, pairs: Sequence[Pair]) -> float:
    """Returns the share of the pairs whose better response gets the higher reward, by our code for both trainers."""
    rewards = predict(loaded, rows_of(pairs).encoded, batch_tokens=8_192)[:, 0]
    return float((rewards[::2] > rewards[1::2]).mean())


def peer_python() -> str:
    """Returns the Python of an environment with TRL, which is made where there is none."""
    if path := os.environ.get("TRL_PYTHON"):
        return path
    place = ROOT / "var" / "peers" / "trl"
    python = place / "bin" / "python"
    if not python.exists():
        print("Installing TRL into var/peers/trl ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PEER], check=True)
    return str(python)


def compare(bench: Bench, pairs: list[Pair], held_out: list[Pair], *, repeats: int) -> dict[str, Any]:
    """Runs all trainers in turn, so many times over; returns medians by the trainer's name.

    In turn, so that whatever else the machine does slows all of them.
    """
    outcomes: dict[str, list[Outcome]] = {name: [] for name in ("Rewardloop", *PEERS)}
    for _ in range(repeats):
        outcomes["Rewardloop"].append(bench.ours(pairs, held_out))
        for name, settings in PEERS.items():
            outcomes[name].append(bench.theirs(pairs, held_out, settings))
    seconds = {name: statistics.median(outcome.seconds for outcome in runs) for name, runs in outcomes.items()}
    processor = {name: statistics.median(outcome.processor for outcome in runs) for name, runs in outcomes.items()}
    return {
        name: {
            "seconds": round(seconds[name], 1),
            "tokens_per_second": round(tokens_of(pairs) / seconds[name]),
            "times": round(seconds[name] / seconds["Rewardloop"], 2),
            "processor_seconds": round(processor[name], 1),
            "processor_times": round(processor[name] / processor["Rewardloop"], 2),
            "accuracy": statistics.median(outcome.accuracy or 0 for outcome in runs),
            **({"mfu": runs[0].mfu} if runs[0].mfu else {}),
            **({"compiling": round(runs[0].compiling, 1)} if runs[0].compiling else {}),
        }
        for name, runs in outcomes.items()
    }


def same_losses(bench: Bench, pairs: list[Pair]) -> float:
    """Returns the largest difference between both trainers' losses over the first batches, trained on in order.

    A trainer that is quicker because it computes something else would show here.
    """
    first = pairs[: SAME * bench.batch]
    our_losses = bench.ours(first, first, in_order=True).losses
    trl_losses = bench.theirs(first, first, {**PLAIN, "gradient_checkpointing": False}, in_order=True).losses
    return max(abs(a - b) for a, b in zip(our_losses, trl_losses, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description="Pairwise training beside TRL's RewardTrainer.")
    parser.add_argument("--size", default="2m", choices=list(SIZES))
    parser.add_argument("--pairs", type=int, default=400)
    parser.add_argument("--held-out", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--batch", type=int, default=BATCH, help="pairs of a step")
    parser.add_argument("--micro-tokens", type=int, default=0, help="what ours computes at once; 0: a whole step")
    parser.add_argument("--compile", action="store_true", help="compile the layers before the time is taken")
    parser.add_argument("--kinds", nargs="+", default=["qwen3", "llama"], choices=["qwen3", "llama"])
    options = parser.parse_args()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    hh = Path(os.environ.get("HH_PAIRS", ROOT.parent / "shared" / "data" / "hh_pairs_train.jsonl.gz"))
    items = shuffled(read_hh(hh)) if hh.exists() else []
    texts = [t.content for good, _ in items for t in good.conversation] + [i.response for p in items for i in p]
    tokenizer = make_tokenizer(texts or ["no text at all"])
    device, threads = choose_device("auto"), options.threads
    print(json.dumps({"device": name_of(device), "threads": threads, "torch": torch.__version__, "size": options.size}))
    for kind in options.kinds:
        with tempfile.TemporaryDirectory(prefix="rewardloop-bench-") as name:
            model = make_model(kind, options.size, tokenizer, Path(name) / "model")
            bench = Bench(
                model, Path(name), device, threads, options.batch, options.micro_tokens, compiles=options.compile
            )
            loaded = bench.loaded(model)
            sets = {"HelpSteer2's lengths": drawn(options.pairs + options.held_out)}
            if items:
                sets["HH pairs"] = encode(items[: options.pairs + options.held_out], loaded)
            for label, pairs in sets.items():
                fit, held_out = pairs[: options.pairs], pairs[options.pairs :]
                print(json.dumps({"model": kind, "data": label, "pairs": len(fit), "tokens": tokens_of(fit)}))
                print(json.dumps({"largest difference of losses": same_losses(bench, fit)}))
                for trainer, values in compare(bench, fit, held_out, repeats=options.repeats).items():
                    print(json.dumps({"trainer": trainer, **values}), flush=True)


def name_of(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"


if __name__ == "__main__":
    main()
