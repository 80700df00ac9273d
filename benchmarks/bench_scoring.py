"""Measures scoring beside plain transformers, and what the database adds.

`python -m benchmarks.bench_scoring [model] [rows] [--size 2m] [--items 400] [--responses 100000]` runs the parts that
are named, or all of them. *model* compares our batches with plain transformers in padded batches of random order, on
the same model, tokens and machine: small Qwen3-like and Llama-like models with random weights on tokens of HelpSteer2's
lengths, and MiniLM on Anthropic's HH pairs (HH_PAIRS, or ../shared/data/hh_pairs_train.jsonl.gz, if it is there). On a
CPU the time is the processor's, of one thread, as others may use the machine; on a CUDA device it is the clock's.
*rows* scores responses by a model that costs nothing: what remains is the database's time.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock
from uuid import UUID

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification
from transformers.utils import logging

from benchmarks import product
from benchmarks.load import ATTRIBUTES
from benchmarks.measuring import HH_PAIRS, heading, options, row
from benchmarks.processes import POSTGRES, worked_seconds
from benchmarks.training import drawn, make_model, make_tokenizer, read_hh
from rewards.learning.backbones import Source, find_backbone
from rewards.learning.data import Floats
from rewards.learning.encoding import Encoded
from rewards.learning.inference import choose_device, predict
from rewards.learning.model import Loaded
from rewards.learning.model_loading import load_backbone

if TYPE_CHECKING:
    from rewards.models import RewardModel

BUDGET = 8_192
BATCHES = (8, 32)
NEAR = 1e-4
"""How far two ways of computing the same in fp32 may differ."""
CHARACTERS = 1_500
TASKS_A_CHUNK = 256
PARTS = 10


def report_models(size: str, items: int) -> None:
    device = choose_device("auto")
    cuda = device.type == "cuda"
    if not cuda:
        torch.set_num_threads(1)
    print(f"{torch.cuda.get_device_name(device) if cuda else 'one thread of a CPU, processor time'}, fp32")
    heading("model", "items", "tokens", "way", "responses a second", "tokens a second", "times")
    tokenizer = make_tokenizer(["Nothing is read from this text."])
    tokens = [side for pair in drawn(items // 2) for side in (pair.chosen, pair.rejected)]
    for kind in ("qwen3", "llama"):
        with tempfile.TemporaryDirectory() as folder:
            place = make_model(kind, size, tokenizer, Path(folder), task="SequenceClassification")
            loaded = load_backbone(Source(str(place), local=True), attributes=["reward"], max_length=2_048)
            plain = AutoModelForSequenceClassification.from_pretrained(place, dtype=torch.float32).to(device).eval()

            def score(padded: Any, plain: Any = plain) -> Any:
                return plain(input_ids=padded.ids, attention_mask=padded.mask, use_cache=False).logits

            report(f"{kind} {size}", loaded, score, tokens, device)
    if not HH_PAIRS.exists():
        print(f"\n{HH_PAIRS} is not here: name the file in HH_PAIRS to compare MiniLM too.")
        return
    loaded = load_backbone(find_backbone("minilm"), attributes=["reward"], max_length=512)
    texts = [loaded.frame.encode(item) for pair in read_hh(HH_PAIRS)[: items // 2] for item in pair]
    report("MiniLM, HH pairs", loaded, loaded.network, texts, device)


def report(
    model: str, loaded: Loaded, score: Callable[[Any], Any], items: Sequence[Encoded], device: torch.device
) -> None:
    """Prints a row for each way; the others' times are shown as multiples of ours."""
    loaded.network.to(device)
    own = measured(lambda: predict(loaded, items, batch_tokens=BUDGET), device)
    order = random.Random(0).sample(range(len(items)), len(items))

    @torch.inference_mode()
    def in_turn(size: int) -> Floats:
        """Scores batches of so many items in random order, as a plain loop would make them."""
        scores = np.empty((len(items), 1))
        for batch in (order[start : start + size] for start in range(0, len(order), size)):
            scores[batch] = score(loaded.collate([items[i] for i in batch])).double().cpu().numpy()
        return scores

    ways = {f"plain, {size} at a time": measured(lambda size=size: in_turn(size), device) for size in BATCHES}  # type: ignore[misc]
    tokens = sum(len(item.ids) for item in items)
    for way, (seconds, scores) in (ways | {"ours": own}).items():
        difference = float(np.abs(scores - own[1]).max())
        assert difference < NEAR, f"{way} differs by {difference}"
        rates = (f"{len(items) / seconds:,.1f}", f"{tokens / seconds:,.0f}", f"{seconds / own[0]:.2f}")
        row(model, len(items), f"{tokens:,}", way, *rates)


def measured(compute: Callable[[], Floats], device: torch.device) -> tuple[float, Floats]:
    """Returns the seconds of the quicker of two passes, and its scores: the first one warms caches up."""

    def clock() -> float:
        if device.type == "cpu":
            return time.process_time()
        torch.cuda.synchronize(device)  # a GPU works on after the call that started it has returned
        return time.perf_counter()

    passes = []
    for _ in range(2):
        start = clock()
        scores = compute()
        passes.append((clock() - start, scores))
    return min(passes, key=lambda one: one[0])


# The rows --------------------------------------------------------------------------------------------------


class Costless:
    """A scorer that answers at once with the same scores for every response."""

    precision = "float32"

    def in_precision(self, name: str) -> Costless:
        return self

    def encode(self, item: Any) -> str:
        return str(item.response)

    def key(self, encoded: str) -> UUID:
        return UUID(bytes=blake2b(encoded.encode(), digest_size=16).digest())

    def score_encoded(self, encoded: Sequence[str]) -> list[Any]:
        from rewards.scoring.chunks import GivenScores

        return [GivenScores(dict.fromkeys(ATTRIBUTES, 2.345678901234), 2.345678901234, 0.123456789) for _ in encoded]


def report_rows(responses: int) -> None:
    with product.database():
        from django.utils import timezone

        from benchmarks import filling
        from rewards.models import RewardModel, RunState, TrainingRun
        from rewards.scoring import start_due

        project = filling.make_project("scored", crew={}, tasks=responses // 2, characters=CHARACTERS)
        run = TrainingRun.objects.create(project=project, reason="a benchmark", state=RunState.PROMOTED)
        weights = dict.fromkeys(ATTRIBUTES, 0.2)
        champion = {"is_champion": True, "promoted_at": timezone.now(), "version": 1, "run": run, "manifest": {}}
        model = RewardModel.objects.create(
            project=project, path="models/none", attributes=list(ATTRIBUTES), attribute_weights=weights, **champion
        )
        print(f"\n{responses:,} responses of {CHARACTERS} characters, a model that costs nothing, one worker")
        heading("ms a response", "clock", "worker's processor", "PostgreSQL's")
        turns = walk(model)
        tenth = len(turns) // PARTS
        for name, some, number in (
            ("all", turns, responses),
            ("the first tenth", turns[:tenth], tenth * 2 * TASKS_A_CHUNK),
            ("the last full tenth", turns[-tenth - 3 : -3], tenth * 2 * TASKS_A_CHUNK),
            ("once more, all scored", walk(model, anew=True), responses),
        ):
            row(name, *(f"{1000 * sum(of) / max(1, number):.3f}" for of in zip(*some, strict=True)))
        start = time.perf_counter()
        assert start_due(now=timezone.now()) == 0
        print(f"\nWith nothing new, the check that beat asks for takes {1000 * (time.perf_counter() - start):.1f} ms.")


def walk(model: RewardModel, *, anew: bool = False) -> list[list[float]]:
    """Takes the turns of a pass one after the other, without a queue; returns the seconds that each of them takes.

    By the clock, of the worker's processor time and of PostgreSQL's.
    """
    from django.utils import timezone

    from rewards.scoring import pass_lanes

    def clocks() -> tuple[float, float, float]:
        return time.perf_counter(), time.process_time(), worked_seconds(POSTGRES)

    messages: list[tuple[int, int]] = []
    costs = []
    collected = mock.patch.object(pass_lanes, "send", lambda *message: messages.append(message))
    with collected, mock.patch.object(pass_lanes, "scorer_of", return_value=Costless()):
        pass_lanes.wake(model, now=timezone.now(), anew=anew)
        while messages:
            before = clocks()
            turn = pass_lanes.take(*messages.pop(), now=timezone.now(), tasks=TASKS_A_CHUNK)
            if turn:
                pass_lanes.score(turn)
                pass_lanes.finish(turn, now=timezone.now())
            costs.append([end - start for start, end in zip(before, clocks(), strict=True)])
    return costs


def main(words: Sequence[str]) -> None:
    size = "1b" if torch.cuda.is_available() else "2m"
    given = options(words, parts=("model", "rows"), size=size, items=400, responses=100_000)
    if "model" in given.parts:
        logging.set_verbosity_error()  # type: ignore[no-untyped-call]
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        report_models(given.size, given.items)
    if "rows" in given.parts:
        report_rows(given.responses)


if __name__ == "__main__":
    main(sys.argv[1:])
