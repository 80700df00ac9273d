"""Measures how much memory each process takes that holds a part of a model.

`bench_scale memory [--processes 1 2 4] [--layers 40]`. A Llama of about a billion parameters with random weights is
stored in fp32. So many processes at a time load it, compute features of two short conversations, and store it. Another
process reads every 5 ms how much memory each of them has (resident: its own and the pages of files that it reads). What
it had before it loaded is taken off. One process loads the model as a whole.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, LlamaConfig
from transformers.utils.logging import disable_progress_bar

from annotator.launch.install import ROOT
from benchmarks.measuring import heading, options, row
from benchmarks.processes import status
from benchmarks.training import make_tokenizer
from rewards.learning import distributed
from rewards.learning.backbones import Source
from rewards.learning.chat_templates import template_hash
from rewards.learning.data import Item, Turn
from rewards.learning.inference import frozen_features
from rewards.learning.model import DecoderReward
from rewards.learning.model_files import RIDGE, Checkpoint, Manifest, save_checkpoint
from rewards.learning.model_loading import load_backbone
from rewards.learning.process_end import end

SHAPE: dict[str, Any] = {
    "hidden_size": 1536,
    "intermediate_size": 4096,
    "num_attention_heads": 12,
    "num_key_value_heads": 2,
    "vocab_size": 32_000,
}
PHASES = ("loading", "reading", "storing")
EVERY = 0.005
MB = 1e6
ITEMS = [Item(str(n), (Turn("user", "How are you?"),), "Well. " * n) for n in (1, 2)]
ITSELF = ["-m", "benchmarks.scale.memory"]


def main(words: Sequence[str]) -> None:
    given = options(words, processes=[1, 2, 4], layers=40)
    with tempfile.TemporaryDirectory(prefix="bench-memory-") as name:
        scratch, model = Path(name), Path(name) / "backbone"
        # In a process of its own: this one stays small.
        subprocess.run([sys.executable, *ITSELF, "make", str(model), str(given.layers)], cwd=ROOT, check=True)
        size = sum(path.stat().st_size for path in model.glob("*.safetensors")) / MB
        print(f"the stored model has {size:,.0f} MB of weights, in MB:")
        heading("processes", "its share", "before", *PHASES, "loading / share")
        for count in given.processes:
            peaks, share = peaks_of(model, scratch, count), size / count
            worst = [max(one[phase] - one["before"] for one in peaks) / MB for phase in PHASES]
            before = max(one["before"] for one in peaks) / MB
            row(count, *(f"{number:,.0f}" for number in (share, before, *worst)), f"{worst[0] / share:.2f}")


def peaks_of(model: Path, scratch: Path, count: int) -> list[dict[str, int]]:
    """Returns the most bytes that each of `count` processes had in each phase, to load, read and store the model."""
    marks = scratch / f"marks-{count}"
    marks.mkdir()
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
    task = [*ITSELF, "work", str(model), str(scratch / f"stored-{count}"), str(marks)]
    # What is freed goes back to the system at once, so that only what is in use is counted.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "262144", "MALLOC_TRIM_THRESHOLD_": "262144"}
    environment |= {"OMP_NUM_THREADS": "1", "TRANSFORMERS_VERBOSITY": "error"}
    most: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    with subprocess.Popen([*launcher, *task], cwd=ROOT, env=environment) as process:
        while process.poll() is None:
            for mark in marks.iterdir():
                phase = mark.read_text()
                most[mark.name][phase] = max(most[mark.name][phase], status(mark.name, "VmRSS"))
            time.sleep(EVERY)
    if process.returncode:
        raise SystemExit(process.returncode)
    return list(most.values())


def work(model: Path, stored: Path, marks: Path) -> None:
    """Loads, reads and stores the model, in one of the processes that are measured."""

    def enter(phase: str) -> None:
        # Long enough to be seen before the next begins, by all processes alike.
        unfinished = marks.parent / f"{os.getpid()}.mark"
        unfinished.write_text(phase)
        unfinished.rename(marks / str(os.getpid()))
        time.sleep(10 * EVERY)
        distributed.wait()

    device = distributed.join(torch.device("cpu"))
    torch.zeros(1).sum()
    enter("before")
    tried = DecoderReward.try_packing

    def try_packing(network: DecoderReward) -> None:
        # The weights are there now; this is the first pass through them.
        enter("reading")
        tried(network)

    DecoderReward.try_packing = try_packing  # type: ignore[assignment, method-assign]
    enter("loading")
    loaded = load_backbone(Source(str(model), local=True), attributes=["quality"], max_length=64, device=device)
    frozen_features(loaded, [loaded.frame.encode(item) for item in ITEMS], batch_tokens=64)
    enter("storing")
    template = loaded.frame.template
    manifest = Manifest(
        RIDGE, ("quality",), {"quality": 1.0}, (2.0,), loaded.network.pooling, "bench", template,
        template_hash(template), 64, "bench", {},
    )  # fmt: skip
    save_checkpoint(stored, Checkpoint(loaded, manifest))
    enter("done")
    distributed.leave()
    end(0)


def make(place: Path, layers: int) -> None:
    """Stores a Llama with random weights, in files of a gigabyte."""
    disable_progress_bar()  # type: ignore[no-untyped-call]
    tokenizer = make_tokenizer([f"{item.conversation[0].content} {item.response}" for item in ITEMS])
    config = LlamaConfig(num_hidden_layers=layers, **SHAPE)
    network = AutoModelForCausalLM.from_config(config).base_model  # type: ignore[no-untyped-call]
    print(f"{sum(one.numel() for one in network.parameters()):,} parameters")
    network.save_pretrained(place, max_shard_size="1GB")
    tokenizer.save_pretrained(place)


if __name__ == "__main__":
    what, *places = sys.argv[1:]
    if what == "make":
        make(Path(places[0]), int(places[1]))
    else:
        work(*map(Path, places))
