"""The scores that segments should get, as arrays beside the tokens of their responses. NumPy only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rewards.learning.data import Floats, Ints, Task
from rewards.learning.encoding import Encoded


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
