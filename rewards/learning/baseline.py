"""The frozen backbone's features and a ridge on them: the baseline, where fine-tuning starts, and what comes of both.

The ensemble, the learning curve and what is expected of each response come from refits of this ridge, in seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from rewards.learning import curve
from rewards.learning.config import TrainConfig
from rewards.learning.data import Floats, items_of
from rewards.learning.ensemble import Ensemble, fit_ensemble
from rewards.learning.expected import cross_fitted, expected_rows, telling
from rewards.learning.inference import frozen_features
from rewards.learning.model import Loaded
from rewards.learning.objectives import Answers
from rewards.learning.parts import Part
from rewards.learning.ridge import Ridge, constant_direction, fit_ridge

ENSEMBLE_ROWS = 4_096
"""So many train rows are enough to tell how sure a model is; for large models each costs a forward pass."""
Reward = tuple[float, ...]


@dataclass(frozen=True)
class Baseline:
    """All train rows as the frozen backbone saw them, features [rows, features], and the ridge that fits them."""

    features: Floats
    parts: Sequence[Part]
    ridge: Ridge
    blocks: Sequence[int]
    reward: Reward
    seed: int

    def targets(self) -> Floats:
        return np.concatenate([ridge_targets(part.rows.answers, self.reward) for part in self.parts])

    def labels(self) -> Floats:
        return np.concatenate([part.rows.answers.labels for part in self.parts])

    def prompts(self) -> list[str]:
        return [prompt for part in self.parts for prompt in part.prompts()]

    def pairs(self) -> list[tuple[int, int]]:
        start, pairs = 0, []
        for part in self.parts:
            pairs += [(start + int(good), start + int(bad)) for good, bad in part.rows.answers.pairs]
            start += len(part.rows.encoded)
        return pairs


def fit_baseline(loaded: Loaded, parts: Sequence[Part], config: TrainConfig, reward: Reward) -> Baseline:
    """Leaves the ridge in the network's head."""
    features = features_of(loaded, parts, config)
    ridge = fit_head(loaded, features, parts, config, reward)
    return Baseline(features, parts, ridge, loaded.network.blocks, reward, config.seed)


def features_of(loaded: Loaded, parts: Sequence[Part], config: TrainConfig, *, most: int | None = None) -> Floats:
    """[rows, features] of the parts' rows, the first `most` of them."""
    encoded = [each for part in parts for each in part.rows.encoded]
    return frozen_features(loaded, encoded[:most], batch_tokens=config.batch_tokens)


def fit_head(loaded: Loaded, features: Floats, parts: Sequence[Part], config: TrainConfig, reward: Reward) -> Ridge:
    """Puts the ridge of these rows into the network's head."""
    targets = np.concatenate([ridge_targets(part.rows.answers, reward) for part in parts])
    prompts = [prompt for part in parts for prompt in part.prompts()]
    ridge = fit_ridge(features, targets, prompts, alphas=config.alphas, blocks=loaded.network.blocks)
    weight, bias, constant = map(torch.from_numpy, (ridge.weight, ridge.bias, constant_direction(features)))
    loaded.network.set_head(weight, bias, constant)
    return ridge


def ridge_targets(answers: Answers, reward: Reward) -> Floats:
    """[rows, attributes]: the labels; where nothing is rated, 1 for a preferred response and -1 for the other one."""
    if np.isfinite(answers.labels).any():
        return answers.labels
    targets = np.full(len(answers.labels), np.nan)
    targets[answers.pairs[:, 0]], targets[answers.pairs[:, 1]] = 1.0, -1.0
    return targets[:, None] * np.sign(reward)


def ensemble(baseline: Baseline, features: Floats) -> Ensemble:
    """Heads that say how sure a model is, with the baseline's penalties; features of as many rows as there are."""
    count = len(features)
    targets, prompts = baseline.targets()[:count], baseline.prompts()[:count]
    return fit_ensemble(
        features, targets, prompts, alphas=baseline.ridge.alphas, blocks=baseline.blocks, seed=baseline.seed
    )


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
    told = telling(fitted, labels)
    train = [item.id for part in baseline.parts for item in items_of(part.tasks)]
    yield from expected_rows(train, fitted, attributes, told=told)
    yield from expected_rows([item.id for item in items_of(validation.tasks)], scores, attributes, told=told)
