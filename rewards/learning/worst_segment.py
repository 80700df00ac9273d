"""Measures whether a model finds the worst segment of a response, beside chance, position and length. NumPy only.

Counted are responses of which at least two segments have scores that differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rewards.learning.data import Floats, Ints
from rewards.learning.intervals import by_prompt, of_share
from rewards.learning.metrics import Measures

POSITIONS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""The rules of position: always the segment at this share of the way from the first to the last."""
SAME = 1e-9
"""Means that are equal on paper differ by a rounding error."""


@dataclass(frozen=True)
class Case:
    """A response: labels, predicted and lengths [segments] of its segments that have the first two, in their order."""

    prompt: str
    labels: Floats
    predicted: Floats
    lengths: Floats


def cases_of(labels: Floats, predicted: Floats, bounds: Ints, prompts: Sequence[str], *, lengths: Floats) -> list[Case]:
    """Returns the responses with at least two segments whose labels differ.

    labels [segments] and predicted [segments] of all responses, NaN where one is missing, and their lengths [segments]
    in characters; those of response n are from bounds[n] to bounds[n + 1]; prompts [responses].
    """
    cases = []
    for prompt, start, end in zip(prompts, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        known = np.isfinite(labels[start:end]) & np.isfinite(predicted[start:end])
        case = Case(prompt, *(values[start:end][known] for values in (labels, predicted, lengths)))
        if len(case.labels) > 1 and np.ptp(case.labels) > SAME:
            cases.append(case)
    return cases


def worst_segment(cases: Sequence[Case]) -> Measures:
    """Returns how often the segment of the lowest prediction is among those of the lowest label.

    Of several lowest predictions each counts its share, so a model that says the same of all segments is at chance.
    `chance` is what a random segment would reach, `position` the best of the rules in POSITIONS, which is chosen in
    hindsight on these same responses and so is flattered, `last` the rule that it is always the last, and `longest` the
    rule that it is the longest: a long segment has more room for a mistake. Intervals are over prompts, with all tasks
    of one.
    """
    if not cases:
        unknown = dict.fromkeys(("accuracy", "chance", "position", "last", "longest"))
        return {"responses": 0, **unknown, "intervals": {}}
    prompts = [case.prompt for case in cases]
    found = np.array([_share_found(case.predicted, case.labels) for case in cases])
    longest = np.array([_share_found(-case.lengths, case.labels) for case in cases])
    chance = np.array([_lowest(case.labels).mean() for case in cases])
    rules = {share: np.array([_lowest(c.labels)[_place(share, len(c.labels))] for c in cases]) for share in POSITIONS}
    best = max(POSITIONS, key=lambda share: float(rules[share].mean()))
    rivals = {"chance": chance, "position": rules[best], "longest": longest}
    above = {f"above_{name}": found - rival for name, rival in rivals.items()}
    intervals = by_prompt(
        prompts, lambda w: {name: float((values * w).sum() / w.sum()) for name, values in above.items()}
    )
    return {
        "responses": len(cases),
        "accuracy": float(found.mean()),
        "chance": float(chance.mean()),
        "position": {"share": best, "accuracy": float(rules[best].mean())},
        "last": float(rules[1.0].mean()),
        "longest": float(longest.mean()),
        **{name: float(values.mean()) for name, values in above.items()},
        "intervals": {**of_share(found, prompts), **intervals},
    }


def _share_found(predicted: Floats, labels: Floats) -> float:
    lowest = _lowest(predicted)
    return float(lowest @ _lowest(labels) / lowest.sum())


def _lowest(values: Floats) -> Floats:
    """[segments]: 1 for the lowest values, 0 for others."""
    return np.asarray(values <= values.min() + SAME, dtype=np.float64)


def _place(share: float, count: int) -> int:
    return int(share * (count - 1) + 0.5)
