"""Predicts the scores of labelled responses by ridges that have not seen their labels: cross-fitting by prompt.

The rows that a linear head is fitted on come from labels and preferences. NumPy only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewards.learning.data import Features, Floats, Ints
from rewards.learning.ridge import labelled_alike, scaling_of, solve_ridge


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


def scores_of_differences(predicted: Floats, pairs: Ints, *, rows: int) -> Floats:
    """[rows, attributes]: scores from the predictions [2 m, attributes] for what `examples_of` makes of pairs [m, 2].

    Only differences are known: the better row gets half of the predicted difference, the worse row minus half of it.
    """
    # The differences stand before their negatives: the first half is enough.
    scores = np.zeros((rows, predicted.shape[1]))
    scores[pairs[:, 0]] += predicted[: len(pairs)] / 2
    scores[pairs[:, 1]] -= predicted[: len(pairs)] / 2
    return scores


def only_compared(labels: Floats, pairs: Ints) -> bool:
    """Returns whether responses were compared and none was rated: labels [n, attributes], pairs [m, 2]."""
    return len(pairs) > 0 and not np.isfinite(labels).any()


FOLDS = 5


def cross_fitted(
    features: Features,
    targets: Floats,
    prompts: Sequence[str],
    *,
    alphas: Sequence[float],
    blocks: Sequence[int],
    seed: int,
) -> Floats:
    """[n, k]: predictions for the rows of each fold of prompts by ridges fitted on the other folds.

    features [n, d], split into `blocks` columns each; targets [n, k] with NaN for a missing label; alphas [k]: the
    penalty per attribute, as chosen on all rows. With fewer prompts than folds, each prompt is a fold.
    """
    # The scaling uses features only, never labels, so computing it on all rows shows no fold its own labels.
    scaled = scaling_of(features, blocks).apply(features)
    names, groups = np.unique(np.asarray(prompts), return_inverse=True)
    fold = np.random.default_rng(seed).permutation(len(names)) % FOLDS
    expected = np.empty(targets.shape)
    for number in range(min(FOLDS, len(names))):
        held_out = fold[groups] == number
        expected[held_out] = refitted(scaled, targets, ~held_out, np.asarray(alphas))[held_out]
    return expected


def refitted(features: Floats, targets: Floats, fit: NDArray[np.bool_], alphas: Floats) -> Floats:
    """[n, k]: the predictions for all rows of ridges fitted on the rows of `fit` [n].

    features [n, d], targets [n, k] with NaN for a missing label, alphas [k]. Attributes that are labelled in the same
    rows share one decomposition.
    """
    predicted = np.empty(targets.shape)
    known = np.isfinite(targets) & fit[:, None]
    for columns in labelled_alike(known):
        labelled = known[:, columns[0]]
        if not labelled.any():
            # No row of the fit has a label of these attributes: predict the middle of those that there are.
            predicted[:, columns] = middles(targets[:, columns])
            continue
        weight, bias = solve_ridge(features[labelled], targets[labelled][:, columns], alphas[columns])
        predicted[:, columns] = features @ weight.T + bias
    return predicted


def middles(targets: Floats) -> Floats:
    """[attributes]: the middle between the lowest and the highest label of targets [rows, attributes].

    It is 0 for an attribute without labels.
    """
    labels = [column[np.isfinite(column)] for column in targets.T]
    return np.array([(column.min() + column.max()) / 2 if len(column) else 0.0 for column in labels])


def folds(prompts: NDArray[np.str_], *, seed: int) -> Ints | None:
    """[rows]: the number of each row's fold; all rows of a prompt are in one. None with fewer prompts than folds."""
    names, groups = np.unique(prompts, return_inverse=True)
    if len(names) < FOLDS:
        return None
    return np.asarray(np.random.default_rng(seed).permutation(len(names)) % FOLDS)[groups]


def is_informative(expected: Floats, targets: Floats) -> list[bool]:
    """Returns per attribute whether the predictions come nearer to the labels than the labels' mean does."""
    errors = np.nanmean((expected - targets) ** 2, axis=0)
    return [bool(error < spread) for error, spread in zip(errors, np.nanvar(targets, axis=0), strict=True)]


def expected_rows(
    ids: Sequence[str], expected: Floats, attributes: Sequence[str], *, informative: Sequence[bool]
) -> Iterator[dict[str, Any]]:
    """Yields a row per response with the scores of the informative attributes only; expected: [responses, k]."""
    for name, row in zip(ids, expected.tolist(), strict=True):
        yield {
            "id": name,
            "scores": {
                key: value
                for key, value, is_informative in zip(attributes, row, informative, strict=True)
                if is_informative
            },
        }
