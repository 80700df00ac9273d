"""The answers that a network should give about responses and their segments, and those that it gives, as arrays.

Labels get their weights here, and the responses that people tell apart become pairs of rows. NumPy only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rewards.learning.data import Floats, Ints, Task, targets_of
from rewards.learning.encoding import Encoded
from rewards.learning.pairs import better


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
class TuningRows:
    """Encoded responses [rows], what the network should say about them, and the units: lists of rows kept together."""

    encoded: Sequence[Encoded]
    answers: Answers
    units: Sequence[Sequence[int]]

    @property
    def lengths(self) -> list[int]:
        """[rows]: the tokens of every response with its prompt."""
        return [len(e.ids) for e in self.encoded]


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


# Segments --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SegmentAnswers:
    """Labels [segments, aspects], NaN where one is missing, of all rows one after the other.

    The segments of row n are those from bounds[n] to bounds[n + 1]; bounds [rows + 1].
    """

    labels: Floats
    bounds: Ints

    def numbers(self, rows: Sequence[int]) -> Ints:
        """Returns the numbers of the segments of these rows, in the order of the rows."""
        ranges = [np.arange(self.bounds[row], self.bounds[row + 1]) for row in rows]
        return np.concatenate([np.zeros(0, dtype=np.int64), *ranges])

    def of_rows(self, rows: Sequence[int]) -> SegmentAnswers:
        """Returns the answers about the segments of some rows, which are numbered anew in the given order."""
        sizes = np.diff(self.bounds)[np.asarray(rows, dtype=np.int64)]
        return SegmentAnswers(self.labels[self.numbers(rows)], np.concatenate([[0], np.cumsum(sizes)]))

    def known(self) -> int:
        """Returns the number of labels that are not missing."""
        return int(np.isfinite(self.labels).sum())


def segment_answers_of(tasks: Sequence[Task], encoded: Sequence[Encoded], aspects: Sequence[str]) -> SegmentAnswers:
    """Returns the mean scores of the tasks' segments; a segment that owns no token loses its labels."""
    labels = segment_labels(tasks, aspects)
    labels[~owns_tokens(encoded)] = math.nan
    sizes = [len(response.segments) for task in tasks for response in task.responses]
    return SegmentAnswers(labels, np.cumsum([0, *sizes]))


def segment_labels(tasks: Sequence[Task], aspects: Sequence[str]) -> Floats:
    """[segments, aspects]: the mean scores of all segments of the tasks, NaN where one is missing."""
    segments = [segment for task in tasks for response in task.responses for segment in response.segments]
    rows = [[segment.scores.get(name, math.nan) for name in aspects] for segment in segments]
    return np.array(rows, dtype=np.float64).reshape(len(segments), len(aspects))


def owns_tokens(encoded: Sequence[Encoded]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """[segments]: whether each segment of the items owns a token."""
    return np.array([start < end for item in encoded for start, end in item.segments], dtype=bool)


def scores_by_aspect(scores: Floats, aspects: Sequence[str]) -> list[dict[str, float]]:
    """Returns scores [segments, aspects] by the aspects' names; {} for a segment that owns no token."""
    return [
        dict(zip(aspects, row, strict=True)) if np.isfinite(row).all() else {} for row in np.asarray(scores).tolist()
    ]
