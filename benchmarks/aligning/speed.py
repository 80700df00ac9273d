"""DPO beside TRL's DPOTrainer: the same tokens, the same policy to begin with, the same machine."""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen3Config

from benchmarks.bench_training import Quiet, peer_python
from benchmarks.training.pairs import SIZES, VOCABULARY, Pair, drawn, make_tokenizer, tokens_of
from rewards.learning.aligning.config import AlignConfig
from rewards.learning.aligning.policy import find_policy, load_policy
from rewards.learning.aligning.reference import Judgements, log_probs_of
from rewards.learning.aligning.sides import Side, Unit, learnt_places
from rewards.learning.aligning.training import Run, make_optimizer, sizes_of, take_step
from rewards.learning.encoding import Encoded
from rewards.learning.resume_point import Place, State

BATCH, RATE, BETA = 8, 1e-5, 0.1
PLAIN: dict[str, Any] = {"lr_scheduler_type": "constant", "weight_decay": 0.0, "warmup_steps": 0}
PEERS: dict[str, dict[str, Any]] = {
    "TRL as it comes": {},
    "TRL, reference computed ahead, nothing recomputed": {
        "precompute_ref_log_probs": True,
        "gradient_checkpointing": False,
    },
}


@dataclass(frozen=True)
class Outcome:
    """One pass over all pairs with the reference's: seconds by the clock and of the processor, and the losses."""

    seconds: float
    processor: float
    losses: list[float]


@dataclass(frozen=True)
class Bench:
    """A policy in a folder, and where to write; on a CUDA device both trainers use bf16."""

    model: Path
    scratch: Path
    device: torch.device
    threads: int

    def ours(self, pairs: Sequence[Pair], *, in_order: bool = False) -> Outcome:
        torch.set_num_threads(self.threads)
        half = self.device.type == "cuda"
        policy = load_policy(find_policy(str(self.model)), max_length=2_048, device=self.device, half=half)
        config = AlignConfig("dpo", "-", "-", beta=BETA, batch_size=BATCH, learning_rate=RATE, warmup_steps=1)
        units = [Unit(str(number), side(pair.chosen), side(pair.rejected)) for number, pair in enumerate(pairs)]
        began, used = time.monotonic(), time.process_time()
        train = Judgements(units, log_probs_of(policy, units))
        progress = Quiet(self.scratch / "progress.jsonl")
        run = Run(config, policy, train, Judgements([], []), progress, self.scratch / "checkpoint", "bench")
        state, sizes = State(policy.network, make_optimizer(policy, config), Place(), {}), sizes_of(run)
        steps = sizes.epoch(batch_tokens=0, batch_size=BATCH, seed=0, epoch=0)
        if in_order:  # as the peer's batches, so that the losses can be compared
            steps = [list(range(start, start + BATCH)) for start in range(0, len(pairs), BATCH)]
        for step in steps:
            take_step(run, state, sizes, step, steps=len(steps))
        # A GPU works on after the call that started it has returned.
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        return Outcome(time.monotonic() - began, time.process_time() - used, state.place.losses)

    def theirs(self, pairs: Sequence[Pair], settings: dict[str, Any], *, in_order: bool = False) -> Outcome:
        data, out, cuda = self.scratch / "pairs.jsonl", self.scratch / "out.json", self.device.type == "cuda"
        data.write_text("".join(json.dumps(peer_row(pair)) + "\n" for pair in pairs))
        job = {
            "model": str(self.model), "data": str(data), "out": str(out), "scratch": str(self.scratch / "trl"),
            "threads": self.threads, "in_order": in_order, "batch": BATCH, "rate": RATE, "beta": BETA,
            "settings": {"bf16": cuda, "use_cpu": not cuda, **settings},
        }  # fmt: skip
        (self.scratch / "job.json").write_text(json.dumps(job))
        script = Path(__file__).parents[1] / "peers" / "dpo.py"
        subprocess.run([peer_python(), str(script), str(self.scratch / "job.json")], check=True, capture_output=True)
        result = json.loads(out.read_text())
        return Outcome(result["seconds"], result["processor"], result["losses"])


def side(encoded: Encoded) -> Side:
    return Side(encoded, (0,) * len(learnt_places(encoded)), (1.0,))


def peer_row(pair: Pair) -> dict[str, list[int]]:
    start = pair.chosen.response_start
    return {
        "prompt_ids": list(pair.chosen.ids[:start]),
        "chosen_ids": list(pair.chosen.ids[start:]),
        "rejected_ids": list(pair.rejected.ids[start:]),
    }


def compare(bench: Bench, pairs: Sequence[Pair], *, repeats: int) -> dict[str, dict[str, float]]:
    """Runs all trainers in turn, so many times over; returns medians by the trainer's name.

    In turn, so that whatever else the machine does slows all of them.
    """
    outcomes: dict[str, list[Outcome]] = {name: [] for name in ("Rewardloop", *PEERS)}
    for _ in range(repeats):
        outcomes["Rewardloop"].append(bench.ours(pairs))
        for name, settings in PEERS.items():
            outcomes[name].append(bench.theirs(pairs, settings))
    seconds = {name: statistics.median(run.seconds for run in runs) for name, runs in outcomes.items()}
    processor = {name: statistics.median(run.processor for run in runs) for name, runs in outcomes.items()}
    return {
        name: {
            "seconds": round(seconds[name], 1),
            "tokens_per_second": round(tokens_of(pairs) / seconds[name]),
            "times": round(seconds[name] / seconds["Rewardloop"], 2),
            "processor_seconds": round(processor[name], 1),
            "processor_times": round(processor[name] / processor["Rewardloop"], 2),
        }
        for name in outcomes
    }


def largest_difference(bench: Bench, pairs: Sequence[Pair]) -> float:
    """Returns the largest difference between both trainers' losses, trained on the pairs in order.

    A trainer that is quicker because it computes something else would show here.
    """
    ours = bench.ours(pairs, in_order=True).losses
    theirs = bench.theirs(pairs, {**PLAIN, "gradient_checkpointing": False}, in_order=True).losses
    return max(abs(a - b) for a, b in zip(ours, theirs, strict=True))


def make_policy(kind: str, size: str, directory: Path) -> Path:
    """Writes a language model with random weights as a Hugging Face directory; returns the directory."""
    shape, tokenizer = SIZES[size], make_tokenizer(["no text at all"])
    config = {"llama": LlamaConfig, "qwen3": Qwen3Config}[kind](
        **shape,
        num_key_value_heads=shape["num_attention_heads"] // 2,
        head_dim=shape["hidden_size"] // shape["num_attention_heads"],
        vocab_size=VOCABULARY,
        max_position_embeddings=2_048,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
    )
    torch.manual_seed(0)  # every trainer and every run begins with the same weights
    network: Any = AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]
    network.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


def speed_pairs(count: int) -> list[Pair]:
    """Returns pairs of random tokens of about the lengths of HelpSteer2."""
    return drawn(count)
