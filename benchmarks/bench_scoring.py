"""Measures scoring beside plain transformers, what the database adds, what equal texts save, and small requests.

`python -m benchmarks.bench_scoring [model] [rows] [requests] [--size 2m] [--items 400] [--responses 100000]` runs the
parts that are named, or all of them. *model* compares our batches with plain transformers in padded batches of random
order, on the same model, tokens and machine: small Qwen3-like and Llama-like models with random weights on tokens of
HelpSteer2's lengths, and MiniLM on Anthropic's HH pairs (HH_PAIRS, or ../shared/data/hh_pairs_train.jsonl.gz, if it is
there). On a CPU the time is the processor's, of one thread, as others may use the machine; on a CUDA device it is the
clock's.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification
from transformers.utils import logging

from annotator.launch.install import ROOT
from benchmarks.scoring import requests, rows
from benchmarks.training.pairs import SIZES, drawn, encode, make_model, make_tokenizer, read_hh
from rewards.learning.backbones import Source, find_backbone
from rewards.learning.data import Floats, Item
from rewards.learning.encoding import Encoded
from rewards.learning.inference import choose_device, predict
from rewards.learning.model import Loaded
from rewards.learning.model_loading import load_backbone

BUDGET = 8_192
BATCHES = (8, 32)
KINDS = ("qwen3", "llama")
NEAR = 1e-4
"""How far two ways of computing the same in fp32 may differ."""
PARTS = ("model", "rows", "requests")
Ways = dict[str, Callable[[], Floats]]


@dataclass(frozen=True)
class Timed:
    """The seconds of one pass over all items, and its scores."""

    seconds: float
    scores: Floats


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description="Scoring: the model, the rows, small requests.")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[], metavar="{model,rows,requests}")
    parser.add_argument("--size", choices=SIZES, default="1b" if torch.cuda.is_available() else "2m")
    parser.add_argument("--items", type=int, default=400)
    parser.add_argument("--responses", type=int, default=100_000)
    options = parser.parse_args(words)
    parts = options.parts or PARTS
    if "model" in parts:
        logging.set_verbosity_error()  # type: ignore[no-untyped-call]
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        report_models(options.size, options.items)
    if "rows" in parts:
        rows.report(options.responses)
    if "requests" in parts:
        requests.report()


def report_models(size: str, items: int) -> None:
    device = choose_device("auto")
    if device.type == "cpu":
        torch.set_num_threads(1)
    print(f"{_name(device)}, fp32\n")
    print("| model | items | tokens | way | responses a second | tokens a second | times |")
    print("|---|---|---|---|---|---|---|")
    tokenizer = make_tokenizer(["Nothing is read from this text."])
    tokens = [side for pair in drawn(items // 2) for side in (pair.chosen, pair.rejected)]
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            place = make_model(kind, size, tokenizer, Path(folder))
            report(f"{kind} {size}", decoder_ways(place, tokens, device), tokens, device)
    if pairs := hh_pairs():
        loaded = load_backbone(find_backbone("minilm"), attributes=["reward"], max_length=512)
        loaded.network.to(device)
        texts = [side for pair in encode(pairs[: items // 2], loaded) for side in (pair.chosen, pair.rejected)]
        report("MiniLM, HH pairs", encoder_ways(loaded, texts), texts, device)


def report(model: str, ways: Ways, items: Sequence[Encoded], device: torch.device) -> None:
    """Prints a row for each way. The last way is ours, and the others' times are shown as multiples of its time."""
    passes = {way: measured(compute, device) for way, compute in ways.items()}
    *_, own = passes.values()
    tokens = sum(len(item.ids) for item in items)
    for way, timed in passes.items():
        difference = float(np.abs(timed.scores - own.scores).max())
        assert difference < NEAR, f"{way} differs by {difference}"
        rates = f"{len(items) / timed.seconds:,.1f} | {tokens / timed.seconds:,.0f}"
        print(f"| {model} | {len(items)} | {tokens:,} | {way} | {rates} | {timed.seconds / own.seconds:.2f} |")
    sys.stdout.flush()


def measured(compute: Callable[[], Floats], device: torch.device) -> Timed:
    """Returns the quicker of two passes: the first one warms caches up."""
    passes = []
    for _ in range(2):
        start = _clock(device)
        scores = compute()
        passes.append(Timed(_clock(device) - start, scores))
    return min(passes, key=lambda timed: timed.seconds)


def _clock(device: torch.device) -> float:
    if device.type == "cpu":
        return time.process_time()
    torch.cuda.synchronize(device)  # a GPU works on after the call that started it has returned
    return time.perf_counter()


def _name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "one thread of a CPU, processor time"


def decoder_ways(place: Path, items: Sequence[Encoded], device: torch.device) -> Ways:
    loaded = load_backbone(Source(str(place), local=True), attributes=["reward"], max_length=2_048)
    loaded.network.to(device)
    plain = AutoModelForSequenceClassification.from_pretrained(place, dtype=torch.float32).to(device).eval()

    def score(batch: Sequence[Encoded]) -> torch.Tensor:
        padded = loaded.collate(batch)
        logits: torch.Tensor = plain(input_ids=padded.ids, attention_mask=padded.mask, use_cache=False).logits
        return logits

    return {**{f"plain, {size} at a time": in_turn(score, items, size) for size in BATCHES}, **our_way(loaded, items)}


def encoder_ways(loaded: Loaded, items: Sequence[Encoded]) -> Ways:
    def score(batch: Sequence[Encoded]) -> torch.Tensor:
        scores: torch.Tensor = loaded.network(loaded.collate(batch))
        return scores

    return {**{f"plain, {size} at a time": in_turn(score, items, size) for size in BATCHES}, **our_way(loaded, items)}


def our_way(loaded: Loaded, items: Sequence[Encoded]) -> Ways:
    return {"ours": lambda: predict(loaded, items, batch_tokens=BUDGET)}


def in_turn(
    score: Callable[[Sequence[Encoded]], torch.Tensor], items: Sequence[Encoded], size: int
) -> Callable[[], Floats]:
    """Returns a function that scores batches of so many items in random order, as a plain loop would make them."""
    order = random.Random(0).sample(range(len(items)), len(items))

    @torch.inference_mode()
    def compute() -> Floats:
        scores = np.empty((len(items), 1))
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            scores[batch] = score([items[i] for i in batch]).double().cpu().numpy()
        return scores

    return compute


def hh_pairs() -> list[tuple[Item, Item]]:
    path = Path(os.environ.get("HH_PAIRS") or ROOT.parent / "shared" / "data" / "hh_pairs_train.jsonl.gz")
    if not path.exists():
        print(f"\n{path} is not here: name the file in HH_PAIRS to compare MiniLM too.")
        return []
    return read_hh(path)


if __name__ == "__main__":
    main(sys.argv[1:])
