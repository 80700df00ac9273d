"""The methods in one world: each aligns the same policy by the same comparisons, and the program judges its answers."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.aligning.world import ASPECTS, NAMED, Row, World, comparisons, corpus, make_policy, make_world
from rewards.learning.aligning.align import align

HELD_OUT, CORPUS, PASSES = 200, 3_000, 1_200
"""Held-out prompts, responses that the policy learns to write from, and comparisons that a method goes through."""
WRITER: dict[str, Any] = {"method": "sft", "learning_rate": 3e-3, "epochs": 6, "batch_size": 32}
"""How the policy that all methods start from learns to write."""
METHODS: dict[int, dict[str, dict[str, float]]] = {
    200: {
        "sft": {"learning_rate": 1e-3},
        "dpo": {"learning_rate": 1e-4, "beta": 1.0},
        "dpo_1d": {"learning_rate": 1e-3, "beta": 0.3},
        "dpo_2d": {"learning_rate": 1e-3, "beta": 0.3},
    },
    1_200: {
        "sft": {"learning_rate": 1e-3},
        "dpo": {"learning_rate": 1e-4, "beta": 0.1},
        "dpo_1d": {"learning_rate": 3e-4, "beta": 0.3},
        "dpo_2d": {"learning_rate": 1e-3, "beta": 0.3},
    },
}
"""For a number of comparisons, each method with the settings that were best in the worlds of seeds 100 to 102."""
T_95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
"""Student's t for 95 % intervals of so many seeds."""


@dataclass(frozen=True)
class Contest:
    """One world with the policy that all methods start from, and the comparisons that they learn from."""

    world: World
    policy: Path
    folder: Path
    pairs: int

    def verdict(self, method: str, settings: dict[str, float]) -> dict[str, float]:
        """Aligns the policy by the method and returns what the program says of its answers to held-out prompts."""
        run = self.folder / "_".join([method, *map(str, settings.values())])
        fixed: dict[str, Any] = {"method": method, "policy": str(self.policy), "data": str(self.folder / "pairs.jsonl")}
        fixed |= {"aspect_weights": ASPECTS, "reference_folder": str(self.folder / "reference")}
        return self._aligned(run, **fixed, batch_size=16, epochs=max(1, PASSES // self.pairs), **settings)

    def start(self) -> dict[str, float]:
        """Returns the same of the policy that all methods start from, which it trains."""
        random = make_policy(self.folder / "random", seed=int(self.folder.name))
        return self._aligned(self.policy.parent, policy=str(random), data=str(self.folder / "corpus.jsonl"), **WRITER)

    def _aligned(self, run: Path, **settings: Any) -> dict[str, float]:
        run.mkdir()
        fixed = {
            "held_out_data": str(self.folder / "held_out.jsonl"), "samples": HELD_OUT, "sample_tokens": 40,
            "max_length": 128, "threads": 1, "device": "cpu",
        }  # fmt: skip
        (run / "config.json").write_text(json.dumps({**fixed, **settings}))
        align(run)
        metrics = json.loads((run / "metrics.json").read_text())
        answers = [json.loads(line) for line in (run / "samples.jsonl").read_text().splitlines()]
        verdicts = [self.world.verdict(named(answer), answer["response"]) for answer in answers]
        means = {name: statistics.mean(verdict[name] for verdict in verdicts) for name in verdicts[0]}
        return {**means, "kl_per_token": metrics["sampled"]["kl_per_token"]}


def named(answer: Row) -> str:
    """The things that the prompt of an answer names."""
    return " ".join(answer["conversation"][0]["content"].split()[:NAMED])


def make_contest(folder: Path, *, seed: int, pairs: int) -> Contest:
    world, place = make_world(seed), folder / str(seed)
    place.mkdir()
    held_out = comparisons(world, HELD_OUT, seed=seed + 1_000)
    rows = {
        "held_out": held_out,
        "corpus": corpus(world, CORPUS, seed=seed, without=held_out),
        "pairs": comparisons(world, pairs, seed=seed, without=held_out),
    }
    for name, of in rows.items():
        (place / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in of))
    return Contest(world, place / "writer" / "policy", place, pairs)


def interval(values: Sequence[float]) -> dict[str, float]:
    """Returns the mean over the seeds and half the width of its 95 % interval, by Student's t."""
    half = T_95[len(values)] * statistics.stdev(values) / math.sqrt(len(values))
    return {"mean": round(statistics.mean(values), 4), "half": round(half, 4)}


def summary(verdicts: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """Returns each method's verdicts, and by how much each one is better than the one before it, seed by seed."""
    names = list(verdicts)
    measured = list(verdicts[names[0]][0])
    means = {name: {key: interval([verdict[key] for verdict in verdicts[name]]) for key in measured} for name in names}
    gains = {
        f"{better} - {worse}": interval(
            [b["quality"] - w["quality"] for b, w in zip(verdicts[better], verdicts[worse], strict=True)]
        )
        for worse, better in pairwise(names)
    }
    return {"verdicts": means, "gains in quality": gains}
