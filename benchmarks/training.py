"""Pairs of responses as tokens, models with random weights, and both our trainers beside TRL's on them.

`python -m benchmarks.bench_training` compares training a reward model, `bench_aligning speed` DPO. TRL runs in an
environment of its own (TRL_PYTHON, or one made in var/peers/trl), by the program `trl_peer.py`.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, PreTrainedTokenizerFast, Qwen3Config

from annotator.launch.install import ROOT
from benchmarks.measuring import tell
from rewards.learning.data import Item, Turn
from rewards.learning.encoding import Encoded
from rewards.learning.inference import choose_device
from rewards.learning.progress import Progress

PEER = ("torch==2.13.0", "transformers==5.23.0", "trl==1.16.0", "datasets==5.2.0", "accelerate==1.15.0")
PAD, END = "<|pad|>", "<|end|>"
VOCABULARY = 8_192
# HelpSteer2 (arXiv 2406.08673, table 2): prompts of 713 characters, responses of 1,493 on the average; 4.3 a token.
PROMPT_TOKENS, RESPONSE_TOKENS, SPREAD = 166, 347, 0.7
SIZES: dict[str, dict[str, int]] = {
    "2m": {"hidden_size": 192, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 576},
    "10m": {"hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 4, "intermediate_size": 768},
    "1b": {"hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 6144},
    "8b": {"hidden_size": 4096, "num_hidden_layers": 36, "num_attention_heads": 32, "intermediate_size": 12288},
}
PLAIN: dict[str, Any] = {"lr_scheduler_type": "constant", "weight_decay": 0.0, "warmup_steps": 0}


@dataclass(frozen=True)
class Pair:
    """Two continuations of one prompt, the better one first."""

    chosen: Encoded
    rejected: Encoded


def read_hh(path: Path) -> list[tuple[Item, Item]]:
    """Reads rows {prompt, chosen, rejected}, whose prompt is a transcript of "Human:" and "Assistant:" turns."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    items = []
    for row in rows:
        turns = tuple(_turns(row["prompt"]))
        good, bad = (Item(f"{row['id']}{name[0]}", turns, row[name].strip()) for name in ("chosen", "rejected"))
        items.append((good, bad))
    return items


def _turns(transcript: str) -> Iterator[Turn]:
    parts = re.split(r"\n\n(Human|Assistant):", "\n\n" + transcript.strip())[1:]
    for speaker, text in zip(parts[::2], parts[1::2], strict=True):
        if text.strip():
            yield Turn("user" if speaker == "Human" else "assistant", text.strip())


def drawn(count: int, *, seed: int = 0, most: int = 1_000) -> list[Pair]:
    """Draws pairs of random tokens with about the lengths of HelpSteer2's prompts and responses.

    Lengths are log-normal. Their means are HelpSteer2's, the spread is our assumption.
    """
    dice = np.random.default_rng(seed)

    def tokens(mean: int) -> tuple[int, ...]:
        # A log-normal variable has the mean exp(mu + sigma^2 / 2).
        length = int(np.clip(dice.lognormal(np.log(mean) - SPREAD**2 / 2, SPREAD), 8, most // 2))
        # From 10 on: the first ids are the tokenizer's special ones, such as padding.
        return tuple(dice.integers(10, VOCABULARY, size=length).tolist())

    pairs = []
    for _ in range(count):
        prompt = tokens(PROMPT_TOKENS)
        sides = [(*prompt, *tokens(RESPONSE_TOKENS)) for _ in range(2)]
        pairs.append(Pair(*(Encoded(ids, len(prompt), len(ids) - len(prompt), 0, 0) for ids in sides)))
    return pairs


def make_tokenizer(texts: Sequence[str]) -> Any:
    """Makes a tokenizer of byte pairs that are learnt from the texts."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=[PAD, END], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=PAD, eos_token=END)  # type: ignore[no-untyped-call]


def make_model(kind: str, size: str, tokenizer: Any, directory: Path, *, task: str) -> Path:
    """Writes a model with random weights as a Hugging Face directory; returns the directory.

    `task` is SequenceClassification, for a reward model of one output, or CausalLM.
    """
    shape = SIZES[size]
    config = {"llama": LlamaConfig, "qwen3": Qwen3Config}[kind](
        **shape,
        num_key_value_heads=shape["num_attention_heads"] // 2,
        head_dim=shape["hidden_size"] // shape["num_attention_heads"],
        vocab_size=VOCABULARY,
        max_position_embeddings=2_048,
        num_labels=1,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
    )
    torch.manual_seed(0)  # every trainer and every run begins with the same weights
    getattr(transformers, f"AutoModelFor{task}").from_config(config).save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


def tokens_of(pairs: Sequence[Pair]) -> int:
    """Counts the tokens of both responses, each with its prompt: what a trainer without packing or sharing reads."""
    return sum(len(side.ids) for pair in pairs for side in (pair.chosen, pair.rejected))


class Quiet(Progress):
    """Writes progress to the file alone, not to standard output as well."""

    def tell(self, event: str, **values: Any) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps({"event": event, **values}) + "\n")


# Beside TRL ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """One pass over all pairs: seconds by the clock and of the processor, and the losses of the steps.

    `more` holds what else ours measures of itself.
    """

    seconds: float
    processor: float
    losses: list[float]
    more: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Contest:
    """A model in a folder, and where to write; on a CUDA device both trainers use bf16. TRL's `peers` are settings."""

    model: Path
    scratch: Path
    device: torch.device
    threads: int
    batch: int
    trainer: ClassVar[str]
    peers: ClassVar[dict[str, dict[str, Any]]]
    settings: ClassVar[dict[str, Any]] = {}
    same: ClassVar[int]
    """Batches whose losses are compared."""

    def ours(self, pairs: Sequence[Pair], *, in_order: bool = False) -> Outcome:
        """Trains by our trainer; `in_order` as the peer's batches, so that the losses can be compared."""
        raise NotImplementedError

    def peer_row(self, pair: Pair) -> dict[str, Any]:
        raise NotImplementedError

    def steps(self, sizes: Any, pairs: Sequence[Pair], *, in_order: bool) -> list[Sequence[int]]:
        if in_order:
            return [range(start, start + self.batch) for start in range(0, len(pairs), self.batch)]
        return list(sizes.epoch(batch_tokens=0, batch_size=self.batch, seed=0, epoch=0))

    def timed(self, work: Callable[[], object]) -> tuple[float, float]:
        """Does the work; returns the seconds by the clock and of the processor."""
        began, used = time.monotonic(), time.process_time()
        work()
        # A GPU works on after the call that started it has returned.
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        return time.monotonic() - began, time.process_time() - used

    def theirs(self, pairs: Sequence[Pair], settings: dict[str, Any], *, in_order: bool = False) -> Outcome:
        data, out, cuda = self.scratch / "pairs.jsonl", self.scratch / "out.json", self.device.type == "cuda"
        data.write_text("".join(json.dumps(self.peer_row(pair)) + "\n" for pair in pairs))
        given = {"bf16": cuda, "use_cpu": not cuda, "per_device_train_batch_size": self.batch}
        job = {
            "trainer": self.trainer, "model": str(self.model), "data": str(data), "out": str(out),
            "scratch": str(self.scratch / "trl"), "threads": self.threads, "in_order": in_order,
            "settings": {**given, **self.settings, **settings},
        }  # fmt: skip
        (self.scratch / "job.json").write_text(json.dumps(job))
        script = Path(__file__).with_name("trl_peer.py")
        subprocess.run([peer_python(), str(script), str(self.scratch / "job.json")], check=True, capture_output=True)
        return Outcome(**json.loads(out.read_text()))

    def compare(self, pairs: Sequence[Pair], *, repeats: int) -> None:
        """Says the largest difference of the losses, and medians of all trainers, which run in turn so many times.

        In turn, so that whatever else the machine does slows all of them. A trainer that is quicker because it computes
        something else would show in its losses.
        """
        first = pairs[: self.same * self.batch]
        ours = self.ours(first, in_order=True).losses
        theirs = self.theirs(first, {**PLAIN, "gradient_checkpointing": False}, in_order=True).losses
        tell(difference_of_losses=f"{max(abs(a - b) for a, b in zip(ours, theirs, strict=True)):.1e}")
        outcomes: dict[str, list[Outcome]] = {}
        for _ in range(repeats):
            outcomes.setdefault("Rewardloop", []).append(self.ours(pairs))
            for name, settings in self.peers.items():
                outcomes.setdefault(name, []).append(self.theirs(pairs, settings))
        first_of_all = outcomes["Rewardloop"]
        for name, runs in outcomes.items():
            seconds, processor = (
                statistics.median(getattr(run, key) for run in runs) for key in ("seconds", "processor")
            )
            times = {
                "times": seconds / statistics.median(run.seconds for run in first_of_all),
                "processor_times": processor / statistics.median(run.processor for run in first_of_all),
            }
            numbers = {"seconds": seconds, "processor_seconds": processor, **times, **runs[0].more}
            tell(trainer=name, tokens_per_second=round(tokens_of(pairs) / seconds), **numbers)


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


def contests(
    make: Callable[..., Contest], given: Any, *, task: str, texts: Sequence[str]
) -> Iterator[tuple[str, Contest]]:
    """Yields a contest for each kind of model, with the options of the command line."""
    device, tokenizer = choose_device("auto"), make_tokenizer(texts)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    tell(device=name, threads=given.threads, torch=torch.__version__, size=given.size)
    for kind in given.kinds:
        with tempfile.TemporaryDirectory(prefix="rewardloop-bench-") as folder:
            model = make_model(kind, given.size, tokenizer, Path(folder) / "model", task=task)
            yield kind, make(model, Path(folder), device, given.threads)
