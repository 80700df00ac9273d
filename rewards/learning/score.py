"""Stage: a stored model in, a score per response out. The serving process keeps one Scorer loaded."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from uuid import UUID

import torch

from rewards.learning.atomic_directories import sync
from rewards.learning.config import ScoreConfig, read_config
from rewards.learning.data import Item, read_items
from rewards.learning.encoding import Encoded
from rewards.learning.ensemble import Ensemble, read_ensemble
from rewards.learning.inference import choose_device, frozen_features, predict
from rewards.learning.metrics import weighted_sum
from rewards.learning.model_files import Checkpoint, load_checkpoint

AT_ONCE = 4_096
"""Items whose features are in memory together."""


@dataclass(frozen=True)
class Scored:
    """Scores per attribute and the weighted sum of them; neither is clamped to the scale.

    `uncertainty` is the sum's standard deviation over the model's ensemble of heads; `truncated` says that the item was
    over the token limit and lost some of its text.
    """

    scores: dict[str, float]
    reward: float
    uncertainty: float | None = None
    truncated: bool = False


@dataclass(frozen=True)
class Scorer:
    checkpoint: Checkpoint
    batch_tokens: int
    ensemble: Ensemble | None = None

    def score(self, items: Sequence[Item]) -> list[Scored]:
        """In the order of the items; a score does not depend on which other items come with it."""
        return self.score_encoded([self.encode(item) for item in items])

    def encode(self, item: Item) -> Encoded:
        return self.checkpoint.loaded.frame.encode(item)

    def key(self, encoded: Encoded) -> UUID:
        """Stands for all that the network reads of the item: equal keys have equal scores."""
        read = (encoded.response_start, encoded.response_tokens, *encoded.ids)
        return UUID(bytes=hashlib.blake2b(array("I", read).tobytes(), digest_size=16).digest())

    def score_encoded(self, encoded: Sequence[Encoded]) -> list[Scored]:
        """The same for what `encode` has made of items."""
        parts = [encoded[start : start + AT_ONCE] for start in range(0, len(encoded), AT_ONCE)]
        return [result for part in parts for result in self._score(part)]

    def _score(self, encoded: Sequence[Encoded]) -> list[Scored]:
        manifest = self.checkpoint.manifest
        rows, uncertainties = self._predict(encoded)
        named = [dict(zip(manifest.attributes, row, strict=True)) for row in rows]
        return [
            replace(scored(scores, manifest.attribute_weights), uncertainty=uncertainty, truncated=is_truncated(sample))
            for scores, uncertainty, sample in zip(named, uncertainties, encoded, strict=True)
        ]

    @torch.no_grad()
    def _predict(self, encoded: Sequence[Encoded]) -> tuple[list[list[float]], Sequence[float | None]]:
        """Scores per attribute, and how far the heads of the ensemble differ: one pass through the network for both."""
        loaded, manifest = self.checkpoint.loaded, self.checkpoint.manifest
        if self.ensemble is None:
            rows = predict(loaded, encoded, batch_tokens=self.batch_tokens)
            return rows.tolist(), [None] * len(rows)
        features = frozen_features(loaded, encoded, batch_tokens=self.batch_tokens)
        scores = loaded.network.head(torch.from_numpy(features).float().to(loaded.device))
        reward = [manifest.attribute_weights[name] for name in manifest.attributes]
        return scores.double().tolist(), self.ensemble.deviation(features, reward).tolist()


def load(directory: Path, *, batch_tokens: int = 8192, device: str = "auto") -> Scorer:
    checkpoint = load_checkpoint(directory, device=choose_device(device))
    return Scorer(checkpoint, batch_tokens, read_ensemble(directory, checkpoint.manifest))


def scored(scores: dict[str, float], weights: Mapping[str, float]) -> Scored:
    return Scored(scores, weighted_sum(scores, weights))


def is_truncated(encoded: Encoded) -> bool:
    return encoded.prompt_cut > 0 or encoded.response_cut > 0


def score(directory: Path) -> None:
    """Reads config.json and items.jsonl of `directory`, writes scores.jsonl."""
    config = read_config(ScoreConfig, directory / "config.json")
    items = list(read_items(directory / "items.jsonl"))
    if config.threads:
        torch.set_num_threads(config.threads)
    results = load(Path(config.model), batch_tokens=config.batch_tokens, device=config.device).score(items)
    write_rows(
        directory / "scores.jsonl",
        ({"id": item.id, **asdict(result)} for item, result in zip(items, results, strict=True)),
    )


def write_rows(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    unfinished = path.with_name(f".{path.name}.unfinished")
    with unfinished.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    sync(unfinished)
    unfinished.rename(path)
