"""The frozen backbone's features and a ridge on them: the baseline, where fine-tuning starts, and what comes of both.

The ensemble, the learning curve and what is expected of each response come from refits of this ridge, in seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from rewards.learning import curve, distributed
from rewards.learning.config import TrainConfig
from rewards.learning.cross_fit import cross_fitted, expected_rows, is_informative
from rewards.learning.data import Floats, items_of
from rewards.learning.depth import depths, read, settle
from rewards.learning.ensemble import Ensemble, fit_ensemble
from rewards.learning.inference import frozen_features
from rewards.learning.model import Loaded
from rewards.learning.objectives import Ints
from rewards.learning.ridge import Ridge, constant_direction, fit_ridge
from rewards.learning.splits import Part

ENSEMBLE_ROWS = 4_096
"""So many train rows are enough to tell how sure a model is; for large models each costs a forward pass."""
Reward = tuple[float, ...]


@dataclass(frozen=True)
class Baseline:
    """All train rows as the frozen backbone saw them, features [rows, features], and the ridge that fits them.

    `layers`: so many of the backbone's layers were read.
    """

    features: Floats
    parts: Sequence[Part]
    ridge: Ridge
    blocks: Sequence[int]
    reward: Reward
    seed: int
    layers: int

    def labels(self) -> Floats:
        return np.concatenate([part.rows.answers.labels for part in self.parts])

    def prompts(self) -> list[str]:
        return [prompt for part in self.parts for prompt in part.prompts()]

    def pairs(self) -> Ints:
        return pairs_of(self.parts)

    def left_out(self) -> Floats:
        """[rows, attributes]: what the ridge says of each row when fitted without the row's prompt.

        Of compared rows half the difference, up and down: only that is known.
        """
        residuals, pairs = self.ridge.left_out, self.pairs()
        if not _only_compared(self.labels(), pairs):
            return residuals
        scores = np.zeros((len(self.features), residuals.shape[1]))
        scores[pairs[:, 0]] += residuals[: len(pairs)] / 2
        scores[pairs[:, 1]] -= residuals[: len(pairs)] / 2
        return scores


@dataclass(frozen=True)
class Examples:
    """What a linear head is fitted on: features [n, features], targets [n, attributes], the prompt of each; and the
    features' mean [features], where the head is to give 0, if the targets fix no level."""

    features: Floats
    targets: Floats
    prompts: list[str]
    origin: Floats | None

    def bias(self, weight: Floats, bias: Floats) -> Floats:
        """weight [..., attributes, features], bias [..., attributes] as fitted."""
        return bias if self.origin is None else -weight @ self.origin


def fit_baseline(loaded: Loaded, parts: Sequence[Part], config: TrainConfig, reward: Reward) -> Baseline:
    """Leaves the ridge in the network's head, and in the network the layers that it predicts best from."""
    tried = []
    for layers in depths(loaded.network, config.layers):
        read(loaded.network, layers)
        features = features_of(loaded, parts, config)
        tried.append((layers, features, fitted(loaded, features, parts, config, reward)))
    layers, features, ridge = min(tried, key=lambda trial: float(np.mean(np.square(trial[2].held_out_rmse))))
    read(loaded.network, layers)
    settle(loaded.network)
    set_head(loaded, features, ridge)
    return Baseline(features, parts, ridge, loaded.network.blocks, reward, config.seed, len(layers))


def features_of(loaded: Loaded, parts: Sequence[Part], config: TrainConfig, *, most: int | None = None) -> Floats:
    """[rows, features] of the parts' rows, the first `most` of them."""
    encoded = [sample for part in parts for sample in part.rows.encoded]
    return frozen_features(loaded, encoded[:most], batch_tokens=config.batch_tokens)


def fitted(loaded: Loaded, features: Floats, parts: Sequence[Part], config: TrainConfig, reward: Reward) -> Ridge:
    """The ridge of these rows, the same in every process."""
    given, blocks = examples(features, parts, reward), loaded.network.blocks
    ridge = fit_ridge(given.features, given.targets, given.prompts, alphas=config.alphas, blocks=blocks)
    return distributed.agreed(replace(ridge, bias=given.bias(ridge.weight, ridge.bias)))


def set_head(loaded: Loaded, features: Floats, ridge: Ridge) -> None:
    """Puts the ridge of these rows into the network's head."""
    weight, bias, constant = map(torch.from_numpy, (ridge.weight, ridge.bias, constant_direction(features)))
    loaded.network.set_head(weight, bias, constant)


def examples(features: Floats, parts: Sequence[Part], reward: Reward) -> Examples:
    """The parts' rows, of which the first len(features) are read, with their labels.

    Where nothing is rated, the differences between a preferred response and the other one, and the other way round:
    they leave out what the responses have in common, their prompt above all, which says nothing about which is better.
    """
    count = len(features)
    labels = np.concatenate([part.rows.answers.labels for part in parts])[:count]
    prompts = [prompt for part in parts for prompt in part.prompts()][:count]
    pairs = pairs_of(parts)
    pairs = pairs[(pairs < count).all(axis=1)]
    if not _only_compared(labels, pairs):
        return Examples(features, labels, prompts, None)
    differences = features[pairs[:, 0]] - features[pairs[:, 1]]
    targets = np.ones((len(pairs), 1)) * np.sign(reward)
    of = [prompts[good] for good in pairs[:, 0]]
    return Examples(
        np.concatenate([differences, -differences]),
        np.concatenate([targets, -targets]),
        of + of,
        features.mean(axis=0),
    )


def _only_compared(labels: Floats, pairs: Ints) -> bool:
    return len(pairs) > 0 and not np.isfinite(labels).any()


def pairs_of(parts: Sequence[Part]) -> Ints:
    """[pairs, 2]: the better row and the worse one, counted over all parts."""
    starts = np.cumsum([0] + [len(part.rows.encoded) for part in parts])
    pairs = [part.rows.answers.pairs + start for part, start in zip(parts, starts, strict=False)]
    return np.concatenate(pairs).reshape(-1, 2)


def ensemble(baseline: Baseline, features: Floats) -> Ensemble:
    """Heads that say how sure a model is, with the baseline's penalties; features of as many rows as there are."""
    given = examples(features, baseline.parts, baseline.reward)
    heads = fit_ensemble(
        given.features,
        given.targets,
        given.prompts,
        alphas=baseline.ridge.alphas,
        blocks=baseline.blocks,
        seed=baseline.seed,
    )
    return replace(heads, bias=given.bias(heads.weight, heads.bias))


def learning_curve(baseline: Baseline) -> dict[str, Any] | None:
    rows = curve.Rows(baseline.features, baseline.labels(), baseline.prompts(), baseline.reward, baseline.pairs())
    return curve.learning_curve(rows, alphas=baseline.ridge.alphas, blocks=baseline.blocks, seed=baseline.seed)


def expected(
    baseline: Baseline, attributes: Sequence[str], validation: Part, scores: Floats
) -> Iterator[dict[str, Any]]:
    """What is expected of every labelled response by a ridge that has not seen its label; nothing without labels."""
    labels, prompts, alphas = baseline.labels(), baseline.prompts(), baseline.ridge.alphas
    if not np.isfinite(labels).any() or len(set(prompts)) < 2:
        return
    fitted = cross_fitted(baseline.features, labels, prompts, alphas=alphas, blocks=baseline.blocks, seed=baseline.seed)
    informative = is_informative(fitted, labels)
    train = [item.id for part in baseline.parts for item in items_of(part.tasks)]
    yield from expected_rows(train, fitted, attributes, informative=informative)
    yield from expected_rows(
        [item.id for item in items_of(validation.tasks)], scores, attributes, informative=informative
    )
