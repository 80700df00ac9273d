"""Measures how much memory each process takes that holds a part of a model.

`bench_scale memory [--processes 1 2 4] [--layers 40]`. A Llama of about a billion parameters with random
weights is stored in fp32. So many processes at a time load it, compute features of two short conversations, and store
it. Another process reads every 5 ms how much memory each of them has (resident: its own and the pages of files that it
reads). What it had before it loaded is taken off. One process loads the model as a whole.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, LlamaConfig
from transformers.utils.logging import disable_progress_bar

from annotator.launch.install import ROOT
from benchmarks.training.pairs import make_tokenizer
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
}
VOCABULARY = 32_000
LOADING, READING, STORING = "loading", "reading", "storing"
PHASES = (LOADING, READING, STORING)
BEFORE, DONE = "before", "done"
EVERY = 0.005
MB = 1e6
ITEMS = [Item(str(n), (Turn("user", "How are you?"),), "Well. " * n) for n in (1, 2)]


@dataclass(frozen=True)
class Peaks:
    """The most memory that one process had before it loaded, and in each phase, in bytes."""

    before: int
    phases: dict[str, int]

    def more(self, phase: str) -> float:
        """Returns by how many megabytes the phase exceeds what the process had before."""
        return (self.phases[phase] - self.before) / MB


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description="What each process holds of a large model.")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--layers", type=int, default=40)
    parser.add_argument("--work", nargs=3, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.make:
        make(given.make, layers=given.layers)
    elif given.work:
        work(*given.work)
    else:
        measure(given.processes, layers=given.layers)


def measure(counts: Sequence[int], *, layers: int) -> None:
    with tempfile.TemporaryDirectory(prefix="bench-memory-") as scratch:
        model = Path(scratch) / "backbone"
        # In a process of its own: this one stays small.
        subprocess.run([*command(), "--make", str(model), "--layers", str(layers)], cwd=ROOT, check=True)
        size = sum(path.stat().st_size for path in model.glob("*.safetensors")) / MB
        print(f"the stored model has {size:,.0f} MB of weights, in MB:")
        print("| processes | its share | before | loading | reading | storing | loading / share |")
        print("|---|---|---|---|---|---|---|")
        for count in counts:
            peaks = peaks_of(model, Path(scratch), count)
            share = size / count
            worst = {phase: max(peak.more(phase) for peak in peaks) for phase in PHASES}
            before = max(peak.before for peak in peaks) / MB
            cells = [f"{number:,.0f}" for number in (share, before, *worst.values())]
            print(f"| {count} | {' | '.join(cells)} | {worst[LOADING] / share:.2f} |", flush=True)


def peaks_of(model: Path, scratch: Path, count: int) -> list[Peaks]:
    """Returns what each of `count` processes needed to load, read and store the model."""
    marks = scratch / f"marks-{count}"
    marks.mkdir()
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
    task = ["-m", "benchmarks.scale.memory", "--work", str(model), str(scratch / f"stored-{count}"), str(marks)]
    # What is freed goes back to the system at once, so that only what is in use is counted.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "262144", "MALLOC_TRIM_THRESHOLD_": "262144"}
    environment |= {"OMP_NUM_THREADS": "1", "TRANSFORMERS_VERBOSITY": "error"}
    most: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    with subprocess.Popen([*launcher, *task], cwd=ROOT, env=environment) as process:
        while process.poll() is None:
            for mark in marks.iterdir():
                phase = mark.read_text()
                most[mark.name][phase] = max(most[mark.name][phase], resident(mark.name))
            time.sleep(EVERY)
    if process.returncode:
        raise SystemExit(process.returncode)
    return [Peaks(phases[BEFORE], {phase: phases[phase] for phase in PHASES}) for phases in most.values()]


def resident(process: str) -> int:
    """Returns the resident bytes of a process, 0 once it has ended."""
    try:
        lines = Path("/proc", process, "status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS")), 0)


# In the processes that are measured ------------------------------------------------------------------------


def work(model: Path, stored: Path, marks: Path) -> None:
    def enter(phase: str) -> None:
        # Long enough to be seen before the next begins, by all processes alike.
        unfinished = marks.parent / f"{os.getpid()}.mark"
        unfinished.write_text(phase)
        unfinished.rename(marks / str(os.getpid()))
        time.sleep(10 * EVERY)
        distributed.wait()

    device = distributed.join(torch.device("cpu"))
    torch.zeros(1).sum()
    enter(BEFORE)
    tried = DecoderReward.try_packing

    def try_packing(network: DecoderReward) -> None:
        # The weights are there now; this is the first pass through them.
        enter(READING)
        tried(network)

    DecoderReward.try_packing = try_packing  # type: ignore[assignment, method-assign]
    enter(LOADING)
    loaded = load_backbone(Source(str(model), local=True), attributes=["quality"], max_length=64, device=device)
    frozen_features(loaded, [loaded.frame.encode(item) for item in ITEMS], batch_tokens=64)
    enter(STORING)
    template = loaded.frame.template
    manifest = Manifest(
        RIDGE, ("quality",), {"quality": 1.0}, (2.0,), loaded.network.pooling, "bench", template,
        template_hash(template), 64, "bench", {},
    )  # fmt: skip
    save_checkpoint(stored, Checkpoint(loaded, manifest))
    enter(DONE)
    distributed.leave()
    end(0)


def make(place: Path, *, layers: int) -> None:
    """Stores a Llama with random weights, in files of a gigabyte."""
    disable_progress_bar()  # type: ignore[no-untyped-call]
    texts = [f"{item.conversation[0].content} {item.response}" for item in ITEMS]
    tokenizer = make_tokenizer(texts)
    config = LlamaConfig(vocab_size=VOCABULARY, num_hidden_layers=layers, **SHAPE)
    network = AutoModelForCausalLM.from_config(config).base_model  # type: ignore[no-untyped-call]
    every, one = (sum(p.numel() for p in part.parameters()) for part in (network, network.layers[0]))
    print(f"{every:,} parameters: {network.embed_tokens.weight.numel():,} in the embedding, {one:,} in each layer")
    network.save_pretrained(place, max_shard_size="1GB")
    tokenizer.save_pretrained(place)


def command() -> list[str]:
    return [sys.executable, "-m", "benchmarks.scale.memory"]


if __name__ == "__main__":
    main(sys.argv[1:])
