"""Defines what a stage of training lowers: errors of the attributes, losses of the pairs, or both, and of segments.

A part's sums are divided by the counts of the whole batch, so the gradient is the same however the batch is cut into
parts and over however many processes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from rewards.learning.config import JOINT, REGRESSION
from rewards.learning.data import Floats, Ints, Task, targets_of
from rewards.learning.pairs import better
from rewards.learning.segment_answers import SegmentAnswers


def squared_errors(predicted: Tensor, target: Tensor) -> Tensor:
    """[rows, attributes]: squared errors, HelpSteer2 (arXiv 2406.08673) section 3.

    NaN in the target is a missing label: its error is 0 and it has no gradient.
    """
    known = torch.isfinite(target)
    return torch.where(known, predicted - torch.nan_to_num(target), 0.0).square()


def bradley_terry(chosen: Tensor, rejected: Tensor, strength: Tensor) -> Tensor:
    """[pairs]: -log s(r_c - r_r). HelpSteer2-Preference (arXiv 2410.01257) section 3, eq. 1."""
    return -logsigmoid(chosen - rejected)


def margin_bradley_terry(chosen: Tensor, rejected: Tensor, strength: Tensor) -> Tensor:
    """[pairs]: -log s(r_c - r_r - m): the rewards must differ by the strength m. Ibid., eq. 2."""
    return -logsigmoid(chosen - rejected - strength)


def scaled_bradley_terry(chosen: Tensor, rejected: Tensor, strength: Tensor) -> Tensor:
    """[pairs]: -m log s(r_c - r_r): a pair of strength m counts m times. Ibid., eq. 3."""
    return -strength * logsigmoid(chosen - rejected)


PAIR_LOSSES = {
    "bradley_terry": bradley_terry,
    "margin": margin_bradley_terry,
    "scaled": scaled_bradley_terry,
    JOINT: bradley_terry,
}


@dataclass(frozen=True)
class Answers:
    """The answers that the network should give: labels and their weights [rows, attributes], NaN and 0 where missing.

    pairs [pairs, 2] holds the better row and the worse one, strengths [pairs] how much better it is. `segments` are the
    answers about the segments of the rows, None where the network has no head for them.
    """

    labels: Floats
    weights: Floats
    pairs: Ints
    strengths: Floats
    segments: SegmentAnswers | None = None

    def of_rows(self, rows: Sequence[int]) -> Answers:
        """Returns the answers about some rows, which are numbered anew in the given order; a pair needs both rows."""
        chosen = np.asarray(rows, dtype=np.int64)
        place = np.full(len(self.labels), -1)
        place[chosen] = np.arange(len(chosen))
        pairs = place[self.pairs]
        kept = (pairs >= 0).all(axis=1)
        segments = self.segments and self.segments.of_rows(rows)
        return Answers(self.labels[chosen], self.weights[chosen], pairs[kept], self.strengths[kept], segments)


@dataclass(frozen=True)
class Predicted:
    """What a network says: scores of the responses [rows, attributes], and of their segments [segments, aspects].

    The latter are NaN for a segment that owns no token, and None where the network has no head for segments.
    """

    responses: Floats
    segments: Floats | None = None

    def of_rows(self, rows: Sequence[int], answers: Answers) -> Predicted:
        """Returns what is said of some rows; `answers` are those about all rows."""
        if self.segments is None or answers.segments is None:
            return Predicted(self.responses[rows])
        return Predicted(self.responses[rows], self.segments[answers.segments.numbers(rows)])


@dataclass(frozen=True)
class Objective:
    """A loss by its name in config.OBJECTIVES; `reward` [attributes] makes the scalar reward that pairs compare."""

    name: str
    reward: tuple[float, ...]

    @property
    def regresses(self) -> bool:
        return self.name in (REGRESSION, JOINT)

    @property
    def compares(self) -> bool:
        return self.name in PAIR_LOSSES

    def counts(self, answers: Answers) -> tuple[float, float]:
        """Returns the sum of the labels' weights and the number of pairs, by which their losses are divided."""
        return float(answers.weights.sum()), float(len(answers.pairs))

    def loss(self, scores: Tensor, answers: Answers, counts: tuple[float, float]) -> Tensor:
        """Returns the loss of scores [rows, attributes]; `counts` are those of the whole batch."""
        labels, pairs = counts
        # A part without labels still needs a gradient, of zeros: backward() fails on a loss that depends on nothing.
        loss = scores.sum() * 0.0
        if self.regresses and labels:
            errors = squared_errors(scores, tensor(answers.labels, scores))
            loss = loss + (errors * tensor(answers.weights, scores)).sum() / labels
        if self.compares and len(answers.pairs):
            rewards = scores @ torch.tensor(self.reward, dtype=scores.dtype, device=scores.device)
            chosen, rejected = (rewards[torch.from_numpy(side)] for side in answers.pairs.T)
            loss = loss + PAIR_LOSSES[self.name](chosen, rejected, tensor(answers.strengths, scores)).sum() / pairs
        return loss

    def total(self, scores: Floats, answers: Answers) -> float:
        """Returns the loss over all rows at once; NaN where the answers hold nothing that it measures."""
        if not (self.regresses and answers.weights.any()) and not (self.compares and len(answers.pairs)):
            return float("nan")
        return float(self.loss(torch.from_numpy(scores), answers, self.counts(answers)))


def segment_loss(scores: Tensor, answers: SegmentAnswers, count: float) -> Tensor:
    """Returns the squared errors of scores [segments, aspects], summed and divided by the labels of the whole batch."""
    errors = squared_errors(scores, tensor(answers.labels, scores))
    return errors.sum() / max(count, 1.0)


def whole_loss(objective: Objective, predicted: Predicted, answers: Answers, *, segment_weight: float) -> float:
    """Returns the loss over all rows at once, with that of their segments times its weight.

    Either part may have nothing to measure; it is NaN where both have nothing.
    """
    of_responses = objective.total(predicted.responses, answers)
    if predicted.segments is None or answers.segments is None or not answers.segments.known():
        return of_responses
    scores = torch.from_numpy(np.nan_to_num(predicted.segments))
    of_segments = segment_weight * float(segment_loss(scores, answers.segments, answers.segments.known()))
    return of_segments if np.isnan(of_responses) else of_responses + of_segments


def answers_of(
    tasks: Sequence[Task], attributes: Sequence[str], *, reward: Mapping[str, float], rounded: bool, by_agreement: bool
) -> Answers:
    """Returns the answers of the tasks' responses.

    Labels are the means of the kept ratings or, if `rounded`, the consensus. With `by_agreement` a label counts less
    the more its ratings vary: 1 / (1 + variance), scaled to 1 on average.
    """
    labels = targets_of(tasks, attributes, rounded=rounded)
    weights = np.isfinite(labels).astype(float)
    if by_agreement:
        weights *= agreement_weights(tasks, attributes)
        # Scaled to 1 on average, so that the learning rate means the same with and without these weights.
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
            by_attribute = [[rating[name] for rating in response.ratings if name in rating] for name in attributes]
            rows.append([1 / (1 + np.var(ratings)) if len(ratings) > 1 else 1.0 for ratings in by_attribute])
    return np.array(rows, dtype=np.float64).reshape(-1, len(attributes))


def as_pairs(pairs: Sequence[Sequence[int]]) -> Ints:
    """[pairs, 2], also where there are no pairs."""
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def tensor(values: Floats, like: Tensor) -> Tensor:
    """Returns the values as a tensor of the same type and on the same device as `like`."""
    return torch.from_numpy(values).to(device=like.device, dtype=like.dtype)
