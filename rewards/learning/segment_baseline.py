"""Fits a ridge per aspect on the frozen features of segments: the baseline, and the segments' head to start from.

The features of a segment are the mean of its tokens' states. The penalty is chosen as for responses, by leaving out one
prompt at a time with all of its segments.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import torch

from rewards.learning import distributed
from rewards.learning.answers import owns_tokens
from rewards.learning.config import TrainConfig
from rewards.learning.data import Features, Floats
from rewards.learning.inference import stored_segment_features
from rewards.learning.model import Loaded, set_segment_head
from rewards.learning.progress import Progress
from rewards.learning.refusals import Refused
from rewards.learning.ridge import Ridge, fit_ridge
from rewards.learning.splits import Part
from rewards.learning.token_rows import TokenRows


class NoSegmentTokens(Refused):
    """Every segment to learn from was cut away, or the chat template has changed the responses."""


@dataclass(frozen=True)
class SegmentRows:
    """What the ridge is fitted on: features [segments, hidden], labels [segments, aspects], the prompt of each segment.

    `owned` [segments] says which own a token: the others have no features.
    """

    features: Features
    labels: Floats
    prompts: Sequence[str]
    owned: np.ndarray[tuple[int], np.dtype[np.bool_]]

    def first(self, count: int) -> SegmentRows:
        """Returns the first `count` segments."""
        return SegmentRows(self.features[:count], self.labels[:count], self.prompts[:count], self.owned[:count])

    def without(self, prompts: Collection[str]) -> SegmentRows:
        """Returns the segments of other prompts."""
        kept = np.array([prompt not in prompts for prompt in self.prompts], dtype=bool)
        # Only the first process has features.
        features = self.features[kept] if len(self.features) else self.features
        others = [prompt for prompt in self.prompts if prompt not in prompts]
        return SegmentRows(features, self.labels[kept], others, self.owned[kept])


@dataclass(frozen=True)
class SegmentBaseline:
    """The segments of all train rows with their frozen features, and the ridge fitted on them."""

    rows: SegmentRows
    ridge: Ridge

    def left_out(self) -> Floats:
        """[segments, aspects]: the ridge's prediction for each segment when it is fitted without the prompt.

        NaN for a segment that owns no token.
        """
        predicted = np.full(self.rows.labels.shape, np.nan)
        predicted[self.rows.owned] = self.ridge.left_out
        return predicted


def fit_segment_baseline(
    loaded: Loaded, parts: Sequence[Part], config: TrainConfig, *, folder: Path, progress: Progress | None = None
) -> SegmentBaseline | None:
    """Fits the ridge and leaves it in the segments' head; None where the network has none.

    Raises:
        NoSegmentTokens: there is no segment to fit it on.
    """
    answers = [part.rows.answers.segments for part in parts if part.rows.answers.segments is not None]
    if not loaded.scores_segments:
        return None
    encoded = TokenRows(chain.from_iterable(part.rows.encoded for part in parts))
    if not owns_tokens(encoded).any():
        raise NoSegmentTokens(
            "no segment of the train part owns a token: raise max_length, or take a backbone whose chat template "
            "leaves a message's content as it is"
        )
    features = stored_segment_features(
        loaded, encoded, batch_tokens=config.batch_tokens, folder=folder, progress=progress
    )
    prompts = [prompt for part in parts for prompt in segment_prompts(part)]
    rows = SegmentRows(features, np.concatenate([a.labels for a in answers]), prompts, owns_tokens(encoded))
    return SegmentBaseline(rows, set_fitted_head(loaded, rows, config))


def set_fitted_head(loaded: Loaded, rows: SegmentRows, config: TrainConfig) -> Ridge:
    """Copies the ridge that the first process fits on these segments into the segments' head."""

    def fit() -> Ridge:
        prompts = [prompt for prompt, is_owned in zip(rows.prompts, rows.owned, strict=True) if is_owned]
        features, labels = rows.features[rows.owned], rows.labels[rows.owned]
        if not len(features):
            # Without the prompts of a fold nothing may be left.
            nothing = np.zeros((labels.shape[1], rows.features.shape[1]))
            return Ridge(nothing, nothing[:, 0], (), (), labels)
        # An aspect whose labels were all dropped gets a head that says 0.
        labels = np.where(np.isfinite(labels).any(axis=0), labels, 0.0)
        return fit_ridge(features, labels, prompts, alphas=config.alphas, blocks=(features.shape[1],))

    ridge = distributed.from_first(fit)
    set_segment_head(loaded.network, torch.from_numpy(ridge.weight), torch.from_numpy(ridge.bias))
    return ridge


def segment_prompts(part: Part) -> list[str]:
    """[segments]: the prompt of every segment of a part."""
    answers, prompts = part.rows.answers.segments, part.prompts()
    sizes = [] if answers is None else np.diff(answers.bounds).tolist()
    return [prompt for prompt, size in zip(prompts, sizes, strict=False) for _ in range(size)]


def segment_count(part: Part) -> int:
    """Returns the number of segments of a part that the network is to score."""
    answers = part.rows.answers.segments
    return 0 if answers is None else len(answers.labels)
