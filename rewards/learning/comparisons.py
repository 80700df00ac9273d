"""Says which responses to a prompt people tell apart. No torch here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import combinations

from rewards.learning.data import Task

Comparison = tuple[int, int, float]
"""The places of two responses, the better one first, and how much better it is."""


def better(task: Task, reward: Mapping[str, float]) -> Iterator[Comparison]:
    """Yields every two responses that people tell apart, and a model can: what it reads of them must differ."""
    for first, second, strength in told_apart(task, reward):
        if is_different(task, first, second) and (min(first, second), max(first, second)) not in task.alike:
            yield first, second, strength


def is_different(task: Task, first: int, second: int) -> bool:
    """Returns whether two responses have different texts."""
    return task.responses[first].text != task.responses[second].text


def told_apart(task: Task, reward: Mapping[str, float]) -> Iterator[Comparison]:
    """Yields every two responses that people tell apart: the better one's place, the worse one's, and the strength.

    Rankings decide first, then the preference, whose strength is 1 to 3, then the labels' weighted sum. Pairs of
    rankings and of labels all have strength 1. What the rankings of a task leave open, or a preference of 0, the labels
    do not decide.
    """
    if task.pairs:
        yield from ((first, second, 1.0) for first, second in task.pairs)
        return
    if task.preference == 0 and len(task.responses) == 2:
        return
    if task.preference and len(task.responses) == 2:
        first, second = (1, 0) if task.preference > 0 else (0, 1)
        yield first, second, float(abs(task.preference))
        return
    # A sum is NaN where a label is missing; its comparisons are false, so it is in no pair.
    sums = [
        sum(weight * response.scores.get(name, math.nan) for name, weight in reward.items())
        for response in task.responses
    ]
    for i, j in combinations(range(len(sums)), 2):
        # Sums that are equal on paper differ by a rounding error, which must not become a preference.
        if abs(sums[i] - sums[j]) >= 1e-9:
            yield (i, j, 1.0) if sums[i] > sums[j] else (j, i, 1.0)
