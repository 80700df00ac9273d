"""Stage: a stored model in, a score per response out. The serving process keeps one Scorer loaded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from rewards.learning.checkpoint import Checkpoint, load_checkpoint
from rewards.learning.config import ScoreConfig, read_config
from rewards.learning.data import Item, read_items
from rewards.learning.directories import sync
from rewards.learning.inference import choose_device, predict
from rewards.learning.measures import weighted_sum


@dataclass(frozen=True)
class Scored:
    """Scores per attribute and the weighted sum of them; neither is clamped to the scale."""

    scores: Mapping[str, float]
    reward: float


@dataclass(frozen=True)
class Scorer:
    checkpoint: Checkpoint
    batch_tokens: int

    def score(self, items: Sequence[Item]) -> list[Scored]:
        """In the order of the items; a score does not depend on which other items come with it."""
        if not items:
            return []
        loaded, manifest = self.checkpoint.loaded, self.checkpoint.manifest
        encoded = [loaded.frame.encode(item) for item in items]
        rows = predict(loaded, encoded, batch_tokens=self.batch_tokens).tolist()
        named = [dict(zip(manifest.attributes, row, strict=True)) for row in rows]
        return [scored(scores, manifest.attribute_weights) for scores in named]


def load(directory: Path, *, batch_tokens: int = 8192, device: str = "auto") -> Scorer:
    return Scorer(load_checkpoint(directory, device=choose_device(device)), batch_tokens)


def scored(scores: Mapping[str, float], weights: Mapping[str, float]) -> Scored:
    return Scored(scores, weighted_sum(scores, weights))


def score(directory: Path) -> None:
    """Reads config.json and items.jsonl of `directory`, writes scores.jsonl."""
    config = read_config(ScoreConfig, directory / "config.json")
    items = list(read_items(directory / "items.jsonl"))
    if config.threads:
        torch.set_num_threads(config.threads)
    results = load(Path(config.model), batch_tokens=config.batch_tokens, device=config.device).score(items)
    write_rows(
        directory / "scores.jsonl",
        ({"id": item.id, "scores": s.scores, "reward": s.reward} for item, s in zip(items, results, strict=True)),
    )


def write_rows(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    unfinished = path.with_name(f".{path.name}.unfinished")
    with unfinished.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    sync(unfinished)
    unfinished.rename(path)
