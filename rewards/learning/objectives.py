"""Defines what a stage of training lowers: errors of the attributes, losses of the pairs, or both, and of segments.

A part's sums are divided by the counts of the whole batch, so the gradient is the same however the batch is cut into
parts and over however many processes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from rewards.learning.answers import Answers, Predicted, SegmentAnswers
from rewards.learning.config import JOINT, REGRESSION
from rewards.learning.data import Floats


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


def tensor(values: Floats, like: Tensor) -> Tensor:
    """Returns the values as a tensor of the same type and on the same device as `like`."""
    return torch.from_numpy(values).to(device=like.device, dtype=like.dtype)
