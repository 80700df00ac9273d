"""Stage: scores responses with a stored model. The serving process keeps its Scorers loaded."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path
from uuid import UUID

import numpy as np
import torch

from rewards.learning import distributed
from rewards.learning.answers import Predicted, scores_by_aspect
from rewards.learning.atomic_directories import sync
from rewards.learning.config import AUTO, ScoreConfig, read_config
from rewards.learning.data import Item, read_items
from rewards.learning.encoding import Encoded
from rewards.learning.ensemble import Ensemble, read_ensemble
from rewards.learning.inference import all_features, choose_device, predict_all, scores_of
from rewards.learning.metrics import weighted_sum
from rewards.learning.model_files import Checkpoint, load_checkpoint
from rewards.learning.precision import name_of, with_precision

AT_ONCE = 4_096
"""The most items whose features are in memory together."""


@dataclass(frozen=True)
class Scored:
    """The scores of a response by attribute and their weighted sum; neither is clamped to the scale.

    `uncertainty` is the sum's standard deviation over the model's ensemble of heads; `truncated` says that the item
    exceeded the token limit and lost some of its text. `precision` is what the model has computed them in.
    """

    scores: dict[str, float]
    reward: float
    uncertainty: float | None = None
    truncated: bool = False
    precision: str = ""


@dataclass(frozen=True)
class SegmentScored(Scored):
    """The scores of a response and, in their order, those of its segments by aspect.

    A segment of which the model has read no token has none: {}.
    """

    segments: list[dict[str, float]] = field(default_factory=list)


@dataclass(frozen=True)
class Scorer:
    """A loaded model with its ensemble; one pass reads at most `batch_tokens` tokens."""

    checkpoint: Checkpoint
    batch_tokens: int
    ensemble: Ensemble | None = None

    @property
    def precision(self) -> str:
        """What the model computes in, by the name that configurations have for it."""
        return name_of(self.checkpoint.loaded.half)

    def in_precision(self, name: str) -> Scorer:
        """Returns the model as it computes in the named precision; both share the weights."""
        loaded = with_precision(self.checkpoint.loaded, name)
        return replace(self, checkpoint=replace(self.checkpoint, loaded=loaded))

    def score(self, items: Sequence[Item]) -> list[Scored]:
        """Returns the scores in the order of the items; a score does not depend on the other items.

        Those of an item with segments are SegmentScored, if the model scores segments.
        """
        return self.score_encoded([self.encode(item) for item in items])

    def encode(self, item: Item) -> Encoded:
        """Returns the tokens that the model reads of the item; raises UnrenderableConversation."""
        read = item if self.checkpoint.loaded.scores_segments else replace(item, segments=())
        return self.checkpoint.loaded.frame.encode(read)

    def key(self, encoded: Encoded) -> UUID:
        """Returns a hash of everything that the network reads of the item: equal keys have equal scores."""
        # The length before a cut is part of it, as an encoder's head reads it besides the tokens.
        read = array("I", (encoded.response_start, encoded.response_tokens, *encoded.ids)).tobytes()
        if encoded.segments:
            read += b"segments" + array("I", chain.from_iterable(encoded.segments)).tobytes()
        return UUID(bytes=hashlib.blake2b(read, digest_size=16).digest())

    def score_encoded(self, encoded: Sequence[Encoded]) -> list[Scored]:
        """Returns the scores of items that `encode` has turned into tokens, in their order.

        Equal tokens are read once, so that no rounding error breaks their tie.
        """
        different = list(dict.fromkeys(encoded))
        parts = [different[start : start + AT_ONCE] for start in range(0, len(different), AT_ONCE)]
        results = [result for part in parts for result in self._score(part)]
        of = dict(zip(different, results, strict=True))
        return [of[sample] for sample in encoded]

    def _score(self, encoded: Sequence[Encoded]) -> list[Scored]:
        manifest = self.checkpoint.manifest
        predicted, uncertainties = self._predict(encoded)
        named = [dict(zip(manifest.attributes, row, strict=True)) for row in predicted.responses.tolist()]
        results = [
            replace(
                scored(scores, manifest.attribute_weights),
                uncertainty=uncertainty,
                truncated=sample.prompt_cut > 0 or sample.response_cut > 0,
                precision=self.precision,
            )
            for scores, uncertainty, sample in zip(named, uncertainties, encoded, strict=True)
        ]
        if predicted.segments is None:
            return results
        sizes = np.cumsum([len(sample.segments) for sample in encoded])[:-1]
        of_items = np.split(predicted.segments, sizes)
        return [
            SegmentScored(**vars(result), segments=scores_by_aspect(rows, manifest.aspects)) if len(rows) else result
            for result, rows in zip(results, of_items, strict=True)
        ]

    @torch.no_grad()
    def _predict(self, encoded: Sequence[Encoded]) -> tuple[Predicted, Sequence[float | None]]:
        """Returns the scores, and how far the ensemble's heads differ: all from one pass.

        A sharded head works only within a pass through the whole network, so several processes need two.
        """
        loaded, manifest = self.checkpoint.loaded, self.checkpoint.manifest
        if self.ensemble is None:
            predicted = predict_all(loaded, encoded, batch_tokens=self.batch_tokens)
            return predicted, [None] * len(predicted.responses)
        features, of_segments = all_features(loaded, encoded, batch_tokens=self.batch_tokens)
        if distributed.size() > 1:
            predicted = predict_all(loaded, encoded, batch_tokens=self.batch_tokens)
        else:
            predicted = scores_of(loaded, features, of_segments)
        reward = [manifest.attribute_weights[name] for name in manifest.attributes]
        return predicted, self.ensemble.deviation(features, reward).tolist()


def load(directory: Path, *, batch_tokens: int = 8192, device: str = AUTO, precision: str = AUTO) -> Scorer:
    """Loads a stored model after verifying its files; `device` and `precision` are those of a configuration.

    Of several processes each loads a part, and all must score the same items.

    Raises:
        NoSuchDevice, NoCheckpoint, CorruptCheckpoint, IncompleteWeights: it cannot be loaded, or not there.
    """
    checkpoint = load_checkpoint(directory, device=distributed.join(choose_device(device)))
    checkpoint = replace(checkpoint, loaded=with_precision(checkpoint.loaded, precision))
    return Scorer(checkpoint, batch_tokens, read_ensemble(directory, checkpoint.manifest))


def scored(scores: dict[str, float], weights: Mapping[str, float]) -> Scored:
    """Returns the scores with their weighted sum."""
    return Scored(scores, weighted_sum(scores, weights))


def score(directory: Path) -> None:
    """Reads config.json and items.jsonl of `directory`, writes scores.jsonl.

    Raises:
        BadConfig, MissingFile, BadRow: the configuration or the items cannot be used.
        NoSuchDevice, NoCheckpoint, CorruptCheckpoint, IncompleteWeights: the model cannot be loaded.
    """
    config = read_config(ScoreConfig, directory / "config.json")
    items = list(read_items(directory / "items.jsonl"))
    if config.threads:
        torch.set_num_threads(config.threads)
    scorer = load(
        Path(config.model), batch_tokens=config.batch_tokens, device=config.device, precision=config.precision
    )
    results = scorer.score(items)
    if distributed.is_first():
        write_rows(
            directory / "scores.jsonl",
            ({"id": item.id, **asdict(result)} for item, result in zip(items, results, strict=True)),
        )
    distributed.leave()


def write_rows(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    """Writes a JSONL file that appears whole or not at all."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    with unfinished.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    sync(unfinished)
    unfinished.rename(path)
