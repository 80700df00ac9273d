"""Compares the methods of alignment in a world where a program knows what is good, and our DPO with TRL's DPOTrainer.

`python -m benchmarks.bench_aligning [world] [speed] [--seeds 5] [--pairs 1200] ...`. The world is
benchmarks/aligning/world.py. For the speed, small models with random weights train on random tokens of HelpSteer2's
lengths (benchmarks/training.py). Both trainers' time includes the reference's log-probabilities.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import torch
from transformers.utils import logging

from benchmarks.aligning.contest import METHODS, make_contest, summary
from benchmarks.measuring import options, tell
from benchmarks.training import Contest, Outcome, Pair, Quiet, contests, drawn, tokens_of
from rewards.learning.aligning.align_config import AlignConfig
from rewards.learning.aligning.policy import find_policy, load_policy
from rewards.learning.aligning.reference import Judgements, log_probs_of
from rewards.learning.aligning.sides import Side, Unit, learnt_places
from rewards.learning.aligning.training import Run, make_optimizer, sizes_of, take_step
from rewards.learning.encoding import Encoded
from rewards.learning.progress import Progress
from rewards.learning.resume_point import Place, State

RATE, BETA = 1e-5, 0.1


@dataclass(frozen=True)
class Dpo(Contest):
    trainer: ClassVar[str] = "dpo"
    settings: ClassVar[dict[str, Any]] = {"learning_rate": RATE, "beta": BETA}
    peers: ClassVar[dict[str, dict[str, Any]]] = {
        "TRL as it comes": {},
        "TRL, reference computed ahead, nothing recomputed": {
            "precompute_ref_log_probs": True,
            "gradient_checkpointing": False,
        },
    }
    same: ClassVar[int] = 2

    def ours(self, pairs: Sequence[Pair], *, in_order: bool = False) -> Outcome:
        torch.set_num_threads(self.threads)
        cuda = self.device.type == "cuda"
        policy = load_policy(find_policy(str(self.model)), max_length=2_048, device=self.device, half=cuda)
        config = AlignConfig("dpo", "-", "-", beta=BETA, batch_size=self.batch, learning_rate=RATE, warmup_steps=1)
        units = [Unit(str(number), side(pair.chosen), side(pair.rejected)) for number, pair in enumerate(pairs)]
        progress, losses = Quiet(self.scratch / "progress.jsonl"), []

        def train() -> None:
            fit = Judgements(units, log_probs_of(policy, units))
            run = Run(config, policy, fit, Judgements([], []), progress, self.scratch / "checkpoint", "bench")
            state, sizes = State(policy.network, make_optimizer(policy, config), Place(), {}), sizes_of(run)
            steps = self.steps(sizes, pairs, in_order=in_order)
            for step in steps:
                take_step(run, state, sizes, step, steps=len(steps))
            losses.extend(state.place.losses)

        return Outcome(*self.timed(train), losses)

    def peer_row(self, pair: Pair) -> dict[str, Any]:
        start, ids = pair.chosen.response_start, {"chosen_ids": pair.chosen.ids, "rejected_ids": pair.rejected.ids}
        return {"prompt_ids": pair.chosen.ids[:start], **{name: of[start:] for name, of in ids.items()}}


def side(encoded: Encoded) -> Side:
    return Side(encoded, (0,) * len(learnt_places(encoded)), (1.0,))


def world(*, seeds: int, pairs: int) -> None:
    verdicts: dict[str, list[dict[str, float]]] = {name: [] for name in ("start", *METHODS[pairs])}
    with tempfile.TemporaryDirectory(prefix="rewardloop-bench-") as folder:
        for seed in range(seeds):
            began = time.process_time()
            contest = make_contest(Path(folder), seed=seed, pairs=pairs)
            verdicts["start"].append(contest.start())
            for method, settings in METHODS[pairs].items():
                verdicts[method].append(contest.verdict(method, settings))
            latest = {name: of[-1]["quality"] for name, of in verdicts.items()}
            tell(seed=seed, **latest, processor_seconds=round(time.process_time() - began))
    for name, values in summary(verdicts).items():
        tell(name, **values)


def main(words: Sequence[str]) -> None:
    speed = {"size": "2m", "speed_pairs": 48, "repeats": 3, "threads": os.cpu_count() or 1, "kinds": ["qwen3", "llama"]}
    given = options(words, parts=("world", "speed"), seeds=5, pairs=1_200, **speed)
    if given.pairs not in METHODS or not 2 <= given.seeds <= 10:
        sys.exit(f"--pairs are {' or '.join(map(str, METHODS))}, --seeds 2 to 10.")
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    if "world" in given.parts:
        # Its own progress on standard output would hide the figures.
        Progress.tell = lambda *_, **__: None  # type: ignore[method-assign]
        world(seeds=given.seeds, pairs=given.pairs)
    if "speed" in given.parts:
        for kind, contest in contests(partial(Dpo, batch=8), given, task="CausalLM", texts=["no text at all"]):
            pairs = drawn(given.speed_pairs)
            tell(model=kind, pairs=len(pairs), tokens=tokens_of(pairs))
            contest.compare(pairs, repeats=given.repeats)


if __name__ == "__main__":
    main(sys.argv[1:])
