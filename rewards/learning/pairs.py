"""Says which responses to a prompt people tell apart, and whether the better one gets the higher reward.

Every count is over all pairs, never a mean of means. A tie of rewards is half right, as the toss of a coin would be,
and is reported. No torch here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rewards.learning.data import Floats, Task
from rewards.learning.intervals import of_share, pairwise_calibration
from rewards.learning.metrics import Measures, weighted_sum

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


LEVELS = ((0.0, 0.5), (0.5, 1.0), (1.0, 5.0))
"""Bins of the difference between the labels: their weighted mean over the attributes, in levels of the scale."""


@dataclass(frozen=True)
class Pair:
    """Two responses of a prompt; `better` and `worse` are their rows among all responses.

    `strength` is the strength of people's preference (1..3), None where labels decide. `apart` is the difference
    between the labels in levels of the scale, NaN where one is missing. `longer` is 1 where the better one is longer,
    and a half where both are equally long.
    """

    prompt: str
    better: int
    worse: int
    strength: int | None
    apart: float
    longer: float


def pairs_of(tasks: Sequence[Task], weights: Mapping[str, float]) -> list[Pair]:
    """Returns the pairs of all tasks; people's preference decides which is better, else the labels' weighted sum."""
    pairs: list[Pair] = []
    total = sum(abs(weight) for weight in weights.values())
    start = 0
    for task in tasks:
        for first, second, by in better(task, weights):
            strength = int(by) if task.is_compared else None
            one, other = task.responses[first], task.responses[second]
            ahead = len(one.text) - len(other.text)
            longer = 0.5 if ahead == 0 else float(ahead > 0)
            # In levels of the scale; NaN where a label is missing.
            apart = float("nan")
            if set(weights) <= set(one.scores) & set(other.scores):
                difference = weighted_sum(one.scores, weights) - weighted_sum(other.scores, weights)
                apart = abs(difference) / total if total else 0.0
            pairs.append(Pair(task.prompt_hash, start + first, start + second, strength, apart, longer))
        start += len(task.responses)
    return pairs


def pairwise(tasks: Sequence[Task], rewards: Sequence[float], weights: Mapping[str, float]) -> Measures:
    """Returns the accuracy over all pairs with its interval, by strength, and the calibration of sigmoid(difference).

    rewards: [responses].
    """
    pairs = pairs_of(tasks, weights)
    differences = differences_of(pairs, rewards)
    by_strength: dict[str, list[int]] = {}
    for place, pair in enumerate(pairs):
        by_strength.setdefault(_strength(pair), []).append(place)
    return {
        **accuracy(pairs, differences),
        "longer_wins": sum(pair.longer for pair in pairs) / len(pairs) if pairs else None,
        "by_strength": {
            name: accuracy([pairs[place] for place in places], differences[places])
            for name, places in sorted(by_strength.items())
        },
        "calibration": pairwise_calibration(differences),
    }


def differences_of(pairs: Sequence[Pair], rewards: Sequence[float]) -> Floats:
    """[pairs]: the better response's reward minus the worse one's; rewards [responses]."""
    return np.array([rewards[pair.better] - rewards[pair.worse] for pair in pairs], dtype=np.float64)


def in_order(differences: Floats) -> Floats:
    """[pairs]: 1 for a positive difference [pairs], a half for a tie, 0 for others, which may not be numbers."""
    return np.asarray((differences > 0) + 0.5 * (differences == 0), dtype=np.float64)


def accuracy(pairs: Sequence[Pair], differences: Floats) -> Measures:
    """Returns the share of pairs with a positive difference [pairs], its interval over prompts, and the ties.

    A tie counts half; a difference that is not a number is wrong.
    """
    if not pairs:
        return {"pairs": 0, "ties": 0, "not_finite": 0, "accuracy": None, "intervals": {}}
    right = in_order(differences)
    return {
        "pairs": len(pairs),
        "ties": int((differences == 0).sum()),
        "not_finite": int((~np.isfinite(differences)).sum()),
        "accuracy": float(right.mean()),
        "intervals": of_share(right, [pair.prompt for pair in pairs]),
    }


def _strength(pair: Pair) -> str:
    if pair.strength is not None:
        return f"preference {pair.strength}"
    low, high = next(bounds for bounds in LEVELS if pair.apart < bounds[1] or bounds == LEVELS[-1])
    return f"labels {low:g}-{high:g}" if high < LEVELS[-1][1] else f"labels {low:g}+"
