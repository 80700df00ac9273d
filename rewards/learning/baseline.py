"""Fits a ridge on the frozen backbone's features: the baseline, and the head from which fine-tuning starts.

The ensemble, the learning curve and the score expected of each response come from refits of this ridge, in seconds.
They also choose how many of an encoder's layers are read: the last ones serve what it was trained for, such as
similarity of meaning, earlier ones may say more about quality, so the left-out errors decide.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from rewards.learning import curve, distributed
from rewards.learning.answers import Predicted
from rewards.learning.config import TrainConfig
from rewards.learning.cross_fit import (
    Examples,
    cross_fitted,
    examples_of,
    expected_rows,
    folds,
    is_informative,
    only_compared,
    scores_of_differences,
)
from rewards.learning.data import Features, Floats, Ints, items_of
from rewards.learning.ensemble import Ensemble, fit_ensemble
from rewards.learning.inference import stored_features
from rewards.learning.model import EncoderReward, Loaded, RewardNetwork
from rewards.learning.progress import Progress
from rewards.learning.refusals import Refused
from rewards.learning.ridge import Ridge, constant_direction, fit_ridge
from rewards.learning.segment_baseline import SegmentBaseline, fit_segment_baseline, segment_count, set_fitted_head
from rewards.learning.sharding import layers_of
from rewards.learning.splits import Part
from rewards.learning.token_rows import TokenRows

ENSEMBLE_ROWS = 4_096
"""This many train rows are enough to measure how sure a model is; for large models each costs a forward pass."""
Reward = tuple[float, ...]


@dataclass(frozen=True)
class Baseline:
    """The features [rows, features] of all train rows from the frozen backbone, and the ridge fitted on them.

    Of several processes only the first has features; all have the ridge.

    `parts` are fit and dev, as `Parts.train` has them. `reward` [attributes] holds the attributes' weights in the
    scalar reward; `blocks` are the columns of each block of features; `layers` is the number of the backbone's layers
    that were read. `depths` holds the features of every depth that was tried. `segments` is the ridge of the responses'
    segments, None where there is nothing to learn from them.
    """

    features: Features
    parts: Sequence[Part]
    ridge: Ridge
    blocks: Sequence[int]
    reward: Reward
    seed: int
    layers: int
    depths: Sequence[Features]
    segments: SegmentBaseline | None = None

    def labels(self) -> Floats:
        """[rows, attributes]: the labels of all train rows, NaN where one is missing."""
        return np.concatenate([part.rows.answers.labels for part in self.parts])

    def prompts(self) -> list[str]:
        """[rows]: the prompt hash of every train row."""
        return [prompt for part in self.parts for prompt in part.prompts()]

    def pairs(self) -> Ints:
        """[pairs, 2]: the better and the worse train row of each pair."""
        return pairs_of(self.parts)

    def is_rated(self) -> bool:
        """Returns whether any train row has a label; otherwise rows are only compared."""
        return bool(np.isfinite(self.labels()).any())

    def left_out(self) -> Floats:
        """[rows, attributes]: the ridge's prediction for each row when it is fitted without the row's prompt.

        Where responses were only compared, the scores are those of `scores_of_differences`.
        """
        predicted, pairs = self.ridge.left_out, self.pairs()
        if not only_compared(self.labels(), pairs):
            return predicted
        return scores_of_differences(predicted, pairs, rows=len(self.labels()))

    def left_out_dev(self) -> Predicted:
        """Returns the ridges' predictions for the dev rows and their segments, each fitted without the row's prompt."""
        fit = self.parts[0]
        of_segments = None if self.segments is None else self.segments.left_out()[segment_count(fit) :]
        return Predicted(self.left_out()[len(fit.rows.encoded) :], of_segments)


def fit_baseline(
    loaded: Loaded,
    parts: Sequence[Part],
    config: TrainConfig,
    reward: Reward,
    *,
    folder: Path,
    progress: Progress | None = None,
) -> Baseline:
    """Fits the ridges and leaves them in the network's heads; the network keeps only the layers that predict best.

    Raises:
        NoSuchDepth: the configuration asks for more layers than the backbone has, or for some of a decoder's.
        NoSegmentTokens: segments are to be learnt from, but none owns a token.
    """
    tried = []
    for layers in depths(loaded.network, config.layers):
        read(loaded.network, layers)
        features = features_of(loaded, parts, config, folder=folder, progress=progress)
        tried.append((layers, features, _fitted(loaded, features, parts, config, reward)))
    # Judged by errors on left-out prompts: the errors on the rows of the fit would always favour more layers.
    layers, features, ridge = min(tried, key=lambda trial: float(np.mean(np.square(trial[2].held_out_rmse))))
    read(loaded.network, layers)
    settle(loaded.network)
    _set_head(loaded, features, ridge)
    every = [trial[1] for trial in tried]
    segments = fit_segment_baseline(loaded, parts, config, folder=folder, progress=progress)
    return Baseline(features, parts, ridge, loaded.network.blocks, reward, config.seed, len(layers), every, segments)


def refit_heads(
    loaded: Loaded, baseline: Baseline, fit: Part, config: TrainConfig, *, away: Collection[str] = frozenset()
) -> None:
    """Fits the ridges of responses and segments on the rows of `fit` alone, and leaves them in the network's heads.

    `fit` is the baseline's first part, from which the prompts in `away` are left out.
    """
    whole = baseline.parts[0]
    features = baseline.features[: len(whole.rows.encoded)]
    segments = baseline.segments.rows.first(segment_count(whole)) if baseline.segments else None
    if away:
        kept = [row for row, prompt in enumerate(whole.prompts()) if prompt not in away]
        # Only the first process has features.
        features = features[kept] if distributed.is_first() else features
        segments = segments.without(away) if segments else None
    _set_head(loaded, features, _fitted(loaded, features, [fit], config, baseline.reward))
    if segments is not None:
        set_fitted_head(loaded, segments, config)


def features_of(
    loaded: Loaded,
    parts: Sequence[Part],
    config: TrainConfig,
    *,
    folder: Path,
    most: int | None = None,
    progress: Progress | None = None,
) -> Features:
    """[rows, features]: the frozen features of the parts' rows, or of the first `most` of them.

    They are kept in a file of the folder, and the first process has them.
    """
    every = (sample for part in parts for sample in part.rows.encoded)
    rows = TokenRows(islice(every, most))
    return stored_features(loaded, rows, batch_tokens=config.batch_tokens, folder=folder, progress=progress)


def _fitted(loaded: Loaded, features: Features, parts: Sequence[Part], config: TrainConfig, reward: Reward) -> Ridge:
    """Returns the ridge that the first process fits on the parts' rows, the same in every process."""

    def fit() -> Ridge:
        rows, blocks = examples(features, parts, reward), loaded.network.blocks
        ridge = fit_ridge(rows.features, rows.targets, rows.prompts, alphas=config.alphas, blocks=blocks)
        return replace(ridge, bias=rows.bias(ridge.weight, ridge.bias))

    return distributed.from_first(fit)


def _set_head(loaded: Loaded, features: Features, ridge: Ridge) -> None:
    """Copies the ridge, which was fitted on these features [rows, features], into the network's head."""
    direction = distributed.from_first(lambda: constant_direction(features))
    weight, bias, constant = map(torch.from_numpy, (ridge.weight, ridge.bias, direction))
    loaded.network.set_head(weight, bias, constant)


def examples(features: Features, parts: Sequence[Part], reward: Reward) -> Examples:
    """Returns the rows and labels that a head is fitted on; `features` may hold only the first rows of the parts."""
    count = len(features)
    labels = np.concatenate([part.rows.answers.labels for part in parts])[:count]
    prompts = [prompt for part in parts for prompt in part.prompts()][:count]
    pairs = pairs_of(parts)
    return examples_of(features, labels, prompts, pairs[(pairs < count).all(axis=1)], reward)


def pairs_of(parts: Sequence[Part]) -> Ints:
    """[pairs, 2]: the better row and the worse one of each pair; rows are numbered over all parts."""
    starts = np.cumsum([0] + [len(part.rows.encoded) for part in parts])
    pairs = [part.rows.answers.pairs + start for part, start in zip(parts, starts, strict=False)]
    return np.concatenate(pairs).reshape(-1, 2)


def ensemble(baseline: Baseline, features: Features) -> Ensemble:
    """Fits the heads whose disagreement says how sure a model is, with the baseline's penalties.

    features [n, features] may come from another network than the baseline's, and may hold the first train rows only.
    """
    rows = examples(features, baseline.parts, baseline.reward)
    heads = fit_ensemble(
        rows.features,
        rows.targets,
        rows.prompts,
        alphas=baseline.ridge.alphas,
        blocks=baseline.blocks,
        seed=baseline.seed,
    )
    return replace(heads, bias=rows.bias(heads.weight, heads.bias))


def learning_curve(baseline: Baseline, alphas: Sequence[float]) -> dict[str, Any] | None:
    """Returns the learning curve of the baseline's ridge as JSON; None where there are too few prompts for one.

    alphas: the penalties of which each refit chooses.
    """
    rows = curve.CurveRows(baseline.depths, baseline.labels(), baseline.prompts(), baseline.reward, baseline.pairs())
    return curve.learning_curve(rows, alphas=alphas, blocks=baseline.blocks, seed=baseline.seed)


def cross_fitted_scores(baseline: Baseline, alphas: Sequence[float]) -> tuple[Floats, Floats] | None:
    """Predicts each train row by a ridge that has not seen its prompt, and by the mean of the labels that it has seen.

    Both are [rows, attributes]; rows are the units of evidence that cost no label. The penalty is chosen again out of
    `alphas` in each fold: one that was chosen on all rows has seen the left-out ones, and would find something in
    shuffled labels too. Returns None with fewer prompts than folds, or where a fold leaves an attribute without labels.
    """
    labels, pairs, prompts = baseline.labels(), baseline.pairs(), np.asarray(baseline.prompts())
    fold = folds(prompts, seed=baseline.seed)
    if fold is None:
        return None
    scores, means = np.zeros(labels.shape), np.zeros(labels.shape)
    for number in range(fold.max() + 1):
        held = fold == number
        # Numbers of the rows that stay, as the rows of a fold are counted from 0 again.
        place = np.cumsum(~held) - 1
        known = pairs[~held[pairs].any(axis=1)]
        rows = examples_of(
            baseline.features[~held], labels[~held], prompts[~held].tolist(), place[known], baseline.reward
        )
        if not len(rows.targets) or not np.isfinite(rows.targets).any(axis=0).all():
            return None
        ridge = fit_ridge(rows.features, rows.targets, rows.prompts, alphas=alphas, blocks=baseline.blocks)
        scores[held] = baseline.features[held] @ ridge.weight.T + rows.bias(ridge.weight, ridge.bias)
        # Of compared responses nothing but the order is known, and a constant has none.
        means[held] = 0.0 if rows.origin is not None else np.nanmean(rows.targets, axis=0)
    return scores, means


def expected(
    baseline: Baseline, attributes: Sequence[str], validation: Part, scores: Floats
) -> Iterator[dict[str, Any]]:
    """Yields a row per response with the scores expected of it by a ridge that has not seen its label.

    scores [validation rows, attributes] are the baseline's predictions for the validation part, whose labels it has
    not seen anyway. Yields nothing without labels, or with a single prompt.
    """
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


# Depth ------------------------------------------------------------------------------------------------------


SHARE = 2 / 3


class NoSuchDepth(Refused):
    """The backbone has fewer layers than were asked for, or has to be read as a whole."""


def depths(network: RewardNetwork, wanted: int) -> list[Sequence[nn.Module]]:
    """Returns the stacks of layers to try: the first `wanted`, or if that is 0, all and an encoder's first two thirds.

    Raises:
        NoSuchDepth: the backbone has fewer layers, or it can only be read as a whole.
    """
    every = list(layers_of(network.network))
    if wanted > len(every):
        raise NoSuchDepth(f"layers is {wanted}, but the backbone has {len(every)}: use 1 to {len(every)}, or 0")
    # Decoders are read as a whole. So are encoders that share one layer's weights among all passes: they have no stack
    # to shorten.
    if not isinstance(network, EncoderReward) or len(every) < 2:
        if wanted:
            raise NoSuchDepth(
                "layers is for encoders that are a pile of layers: this backbone is read as a whole, use 0"
            )
        return [every]
    if wanted:
        return [every[:wanted]]
    return [every, every[: max(1, round(len(every) * SHARE))]]


def read(network: RewardNetwork, layers: Sequence[nn.Module]) -> None:
    """Makes the network compute and store only these layers from now on."""
    former = layers_of(network.network)
    if list(former) == list(layers):
        return
    name = next(name for name, module in network.network.named_modules() if module is former)
    network.network.set_submodule(name, nn.ModuleList(layers))
    # The stored configuration must say how many layers there are: transformers would else build, and miss, the others.
    network.network.config.num_hidden_layers += len(layers) - len(former)


def settle(network: RewardNetwork) -> None:
    """Makes the chosen depth final: the configuration drops the kinds of the layers that are gone.

    Until then `read` may put layers back, which need their kinds.
    """
    config = network.network.config
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[: config.num_hidden_layers]
