"""Compares pairwise training with TRL's RewardTrainer: tokens a second, seconds an epoch, losses of equal batches.

`python -m benchmarks.bench_training [--size 2m] [--pairs 400] [--repeats 3] [--compile] ...`. Small models with
random weights on Anthropic's HH pairs (HH_PAIRS, or ../shared/data/hh_pairs_train.jsonl.gz, if it is there) and on
random tokens of HelpSteer2's lengths. For both trainers tokens are those of both responses, each with its prompt,
without padding. On a CUDA device ours says which share of the device's arithmetic it uses. With --compile ours compiles
its layers before the time is taken.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from transformers.utils import logging

from benchmarks.measuring import HH_PAIRS, options, tell
from benchmarks.training import Contest, Outcome, Pair, Quiet, contests, drawn, read_hh, tokens_of
from rewards.learning.adapters import prepare
from rewards.learning.answers import Answers, TuningRows, as_pairs
from rewards.learning.backbones import Source
from rewards.learning.config import TrainConfig
from rewards.learning.finetune import TuningRun, make_optimizer, take_step
from rewards.learning.model import Loaded
from rewards.learning.model_loading import load_backbone
from rewards.learning.resume_point import Place, State

BATCH = 8  # pairs; TRL's per_device_train_batch_size by default
RATE = 1e-4  # TRL's default


@dataclass(frozen=True)
class Rewards(Contest):
    micro_tokens: int = 0
    compiles: bool = False
    trainer: ClassVar[str] = "reward"
    peers: ClassVar[dict[str, dict[str, Any]]] = {
        "TRL as it comes": {},
        "TRL, lengths grouped, nothing recomputed": {
            "train_sampling_strategy": "group_by_length",
            "remove_unused_columns": False,  # else the lengths
            "gradient_checkpointing": False,
        },
    }
    same: ClassVar[int] = 8

    def ours(self, pairs: Sequence[Pair], *, in_order: bool = False) -> Outcome:
        """Trains; says `mfu`, the share of the device's arithmetic, and the seconds of the steps that compile."""
        torch.set_num_threads(self.threads)
        loaded, more = self.loaded(), {}
        run = self.run_of(loaded, pairs)
        prepare(loaded.network, run.config)
        state = State(loaded.network, make_optimizer(run), Place(), {})
        sizes = loaded.sizes(run.fit.encoded, run.fit.units)
        steps = self.steps(sizes, pairs, in_order=in_order)

        def take(some: Sequence[Sequence[int]]) -> None:
            for units in some:
                take_step(run, state, sizes, units, steps=len(steps))

        if self.compiles and not in_order:
            began = time.monotonic()
            take(steps[:3])
            run.progress.path.unlink()
            more["compiling"] = time.monotonic() - began
        seconds, processor = self.timed(partial(take, steps))
        events = map(json.loads, run.progress.path.read_text().splitlines())
        if shares := [event["mfu"] for event in events if "mfu" in event]:
            more["mfu"] = statistics.median(shares)
        return Outcome(seconds, processor, state.place.losses, more)

    def run_of(self, loaded: Loaded, pairs: Sequence[Pair]) -> TuningRun:
        config = TrainConfig(
            "-", stages=("bradley_terry",), batch_size=self.batch, learning_rate=RATE, head_learning_rate=RATE,
            weight_decay=0.0, warmup_steps=1, micro_tokens=self.micro_tokens, compile=self.compiles,
        )  # fmt: skip
        progress = self.scratch / "progress.jsonl"
        progress.unlink(missing_ok=True)
        encoded = [side for pair in pairs for side in (pair.chosen, pair.rejected)]
        units = [[row, row + 1] for row in range(0, len(encoded), 2)]
        nothing = np.full((len(encoded), 1), np.nan)
        rows = TuningRows(
            encoded, Answers(nothing, np.zeros_like(nothing), as_pairs(units), np.ones(len(units))), units
        )
        return TuningRun(config, loaded, rows, rows, (1.0,), Quiet(progress), self.scratch / "checkpoint", "bench")

    def loaded(self) -> Loaded:
        loaded = load_backbone(Source(str(self.model), local=True), attributes=["reward"], max_length=2_048)
        loaded.network.to(self.device)
        return loaded

    def peer_row(self, pair: Pair) -> dict[str, Any]:
        ids = {"chosen_ids": pair.chosen.ids, "rejected_ids": pair.rejected.ids}
        return {**ids, "length": max(map(len, ids.values()))}


def main(words: Sequence[str]) -> None:
    kinds, threads = ["qwen3", "llama"], os.cpu_count() or 1
    given = options(
        words, size="2m", pairs=400, repeats=3, threads=threads, batch=BATCH, micro_tokens=0, compile=False, kinds=kinds
    )
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    items = read_hh(HH_PAIRS) if HH_PAIRS.exists() else []
    items = random.Random(0).sample(items, len(items))
    texts = [t.content for good, _ in items for t in good.conversation] + [i.response for p in items for i in p]
    make = partial(Rewards, batch=given.batch, micro_tokens=given.micro_tokens, compiles=given.compile)
    for kind, contest in contests(make, given, task="SequenceClassification", texts=texts or ["no text at all"]):
        assert isinstance(contest, Rewards)
        encode = contest.loaded().frame.encode
        sets = {"HelpSteer2's lengths": drawn(given.pairs)}
        if items:
            sets["HH pairs"] = [Pair(encode(good), encode(bad)) for good, bad in items[: given.pairs]]
        for label, pairs in sets.items():
            tell(model=kind, data=label, pairs=len(pairs), tokens=tokens_of(pairs))
            contest.compare(pairs, repeats=given.repeats)


if __name__ == "__main__":
    main(sys.argv[1:])
