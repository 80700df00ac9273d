"""What a stage of training lowers: errors of the attributes, losses of the pairs, or both.

Sums over a part of a batch, divided by the counts of the whole batch: however it is cut into parts, and over however
many processes, the gradient is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rewards.learning.config import JOINT, REGRESSION
from rewards.learning.data import Floats, Task, better, targets_of
from rewards.learning.losses import bradley_terry, margin_bradley_terry, scaled_bradley_terry, squared_errors

PAIR_LOSSES = {
    "bradley_terry": bradley_terry,
    "margin": margin_bradley_terry,
    "scaled": scaled_bradley_terry,
    JOINT: bradley_terry,
}
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Answers:
    """What the network should say about rows: labels and their weights [rows, attributes], NaN and 0 where missing.

    pairs [pairs, 2] holds the better row and the worse one, strengths [pairs] how much better it is.
    """

    labels: Floats
    weights: Floats
    pairs: Ints
    strengths: Floats

    def of_rows(self, rows: Sequence[int]) -> Answers:
        """The answers about some rows, which take new numbers, in their order; a pair needs both of its rows."""
        chosen = np.asarray(rows, dtype=np.int64)
        place = np.full(len(self.labels), -1)
        place[chosen] = np.arange(len(chosen))
        pairs = place[self.pairs]
        kept = (pairs >= 0).all(axis=1)
        return Answers(self.labels[chosen], self.weights[chosen], pairs[kept], self.strengths[kept])


@dataclass(frozen=True)
class Objective:
    """`name` is one of config.OBJECTIVES; `reward` [attributes] makes the scalar reward that pairs compare."""

    name: str
    reward: tuple[float, ...]

    @property
    def regresses(self) -> bool:
        return self.name in (REGRESSION, JOINT)

    @property
    def compares(self) -> bool:
        return self.name in PAIR_LOSSES

    def counts(self, answers: Answers) -> tuple[float, float]:
        """The weight of the labels and the number of pairs: what sums over them are divided by."""
        return float(answers.weights.sum()), float(len(answers.pairs))

    def loss(self, scores: Tensor, answers: Answers, counts: tuple[float, float]) -> Tensor:
        """scores [rows, attributes] of these rows; `counts` those of the whole batch that they are part of."""
        labels, pairs = counts
        loss = scores.sum() * 0.0  # a part without labels still has a gradient, of zeros
        if self.regresses and labels:
            errors = squared_errors(scores, tensor(answers.labels, scores))
            loss = loss + (errors * tensor(answers.weights, scores)).sum() / labels
        if self.compares and len(answers.pairs):
            rewards = scores @ torch.tensor(self.reward, dtype=scores.dtype, device=scores.device)
            chosen, rejected = (rewards[torch.from_numpy(side)] for side in answers.pairs.T)
            loss = loss + PAIR_LOSSES[self.name](chosen, rejected, tensor(answers.strengths, scores)).sum() / pairs
        return loss

    def total(self, scores: Floats, answers: Answers) -> float:
        """The loss over all rows at once; NaN where there is nothing to lose by."""
        if not (self.regresses and answers.weights.any()) and not (self.compares and len(answers.pairs)):
            return float("nan")
        return float(self.loss(torch.from_numpy(scores), answers, self.counts(answers)))


def answers_of(
    tasks: Sequence[Task], attributes: Sequence[str], *, reward: Mapping[str, float], rounded: bool, by_agreement: bool
) -> Answers:
    """Labels are the means of the kept ratings or, `rounded`, the consensus. `by_agreement`: a label counts the less
    the more its ratings vary, 1 / (1 + variance), and 1 on the average."""
    labels = targets_of(tasks, attributes, rounded=rounded)
    weights = np.isfinite(labels).astype(float)
    if by_agreement:
        weights *= agreement_weights(tasks, attributes)
        weights *= np.isfinite(labels).sum() / max(weights.sum(), 1e-12)
    pairs, strengths, start = [], [], 0
    for task in tasks:
        for first, second, strength in better(task, reward):
            pairs.append([start + first, start + second])
            strengths.append(strength)
        start += len(task.responses)
    return Answers(labels, weights, as_pairs(pairs), np.array(strengths, dtype=np.float64))


def agreement_weights(tasks: Sequence[Task], attributes: Sequence[str]) -> Floats:
    """[rows, attributes]: 1 / (1 + variance of the ratings); 1 where there are fewer than two."""
    rows = []
    for task in tasks:
        for response in task.responses:
            given = [[rating[name] for rating in response.ratings if name in rating] for name in attributes]
            rows.append([1 / (1 + np.var(ratings)) if len(ratings) > 1 else 1.0 for ratings in given])
    return np.array(rows, dtype=np.float64).reshape(-1, len(attributes))


def as_pairs(pairs: Sequence[Sequence[int]]) -> Ints:
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def tensor(values: Floats, like: Tensor) -> Tensor:
    return torch.from_numpy(values).to(device=like.device, dtype=like.dtype)
