"""Turns labels and preferences into the rows that a linear head is fitted on. NumPy only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rewards.learning.data import Features, Floats, Ints


@dataclass(frozen=True)
class Examples:
    """The rows that a linear head is fitted on: features [n, features], targets [n, attributes] and prompts [n].

    `origin` is the features' mean [features], at which the head is to give 0 because the targets fix no level; it is
    None where they do.
    """

    features: Features
    targets: Floats
    prompts: list[str]
    origin: Floats | None

    def bias(self, weight: Floats, bias: Floats) -> Floats:
        """[..., attributes]: the bias for a fitted weight [..., attributes, features] and bias [..., attributes]."""
        return bias if self.origin is None else -weight @ self.origin


def examples_of(
    features: Features, labels: Floats, prompts: Sequence[str], pairs: Ints, reward: Sequence[float]
) -> Examples:
    """Returns what a head is fitted on: features [n, d], labels [n, attributes], prompts [n], pairs [m, 2] of rows.

    Where nothing is rated, these are the differences between the preferred response and the other one, and their
    negatives. A difference cancels what both responses share, their prompt above all, which says nothing about which
    of them is better.
    """
    if not only_compared(labels, pairs):
        return Examples(features, labels, list(prompts), None)
    differences = np.subtract(features[pairs[:, 0]], features[pairs[:, 1]], dtype=np.float64)
    # [pairs, attributes]: an attribute that the reward counts negatively must be lower in the better response.
    targets = np.ones((len(pairs), 1)) * np.sign(reward)
    pair_prompts = [prompts[better] for better in pairs[:, 0]]
    return Examples(
        # Both directions, so that the mean difference is 0 and the ridge's centring takes nothing away.
        np.concatenate([differences, -differences]),
        np.concatenate([targets, -targets]),
        pair_prompts + pair_prompts,
        features.mean(axis=0, dtype=np.float64),
    )


def only_compared(labels: Floats, pairs: Ints) -> bool:
    """Returns whether responses were compared and none was rated: labels [n, attributes], pairs [m, 2]."""
    return len(pairs) > 0 and not np.isfinite(labels).any()
