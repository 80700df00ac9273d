"""The common form of all benchmarks: a conversation with right and wrong answers, and the rewards of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewards.learning.data import Floats, Item, Turn
from rewards.learning.intervals import bounds, by_prompt, drawn_means
from rewards.learning.metrics import spearman

Row = Mapping[str, Any]
Measures = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One row of a benchmark with its right answers `good` and its wrong ones `bad`; it counts for the part `group`."""

    id: str
    group: str
    conversation: tuple[Turn, ...]
    good: tuple[str, ...]
    bad: tuple[str, ...]

    @property
    def items(self) -> list[Item]:
        """The answers in their conversation, the right ones first."""
        return [Item(self.id, self.conversation, answer) for answer in (*self.good, *self.bad)]


@dataclass(frozen=True)
class JudgedCase:
    """A case with the rewards of its right answers, good [answers], and of its wrong ones, bad [answers]."""

    case: Case
    good: Floats
    bad: Floats

    @property
    def tied(self) -> bool:
        """Whether a wrong answer has the same reward as a right one."""
        return bool(np.isin(self.good, self.bad).any())


@dataclass(frozen=True)
class Benchmark:
    """A published format: which rows it `matches`, how a row becomes a `case`, and how results are scored.

    `result` scores one case from 0 to 1, `measure` all of them.
    """

    name: str
    columns: str
    matches: Callable[[Row], bool]
    case: Callable[[Row], Case]
    result: Callable[[JudgedCase], float]
    measure: Callable[[Sequence[JudgedCase]], Measures]


def judged(cases: Sequence[Case], rewards: Sequence[float]) -> list[JudgedCase]:
    """Returns the cases with their rewards, which are given in the order of the cases' items."""
    judged_cases, start = [], 0
    for case in cases:
        middle, end = start + len(case.good), start + len(case.good) + len(case.bad)
        judged_cases.append(JudgedCase(case, np.asarray(rewards[start:middle]), np.asarray(rewards[middle:end])))
        start = end
    return judged_cases


def by_length(cases: Sequence[Case]) -> list[JudgedCase]:
    """Returns the cases as a judge would see them who rewards an answer by its length in characters."""
    return judged(cases, [float(len(item.response)) for case in cases for item in case.items])


def groups_of(rows: Sequence[JudgedCase]) -> dict[str, list[JudgedCase]]:
    """Returns the rows by the part that they count for."""
    by_part: dict[str, list[JudgedCase]] = {}
    for row in rows:
        by_part.setdefault(row.case.group, []).append(row)
    return by_part


def results_of(rows: Sequence[JudgedCase], result: Callable[[JudgedCase], float]) -> Floats:
    """[rows]: the result of every row."""
    return np.array([result(row) for row in rows], dtype=np.float64)


def accuracy(rows: Sequence[JudgedCase], result: Callable[[JudgedCase], float]) -> Measures:
    """Returns the mean result over all rows, never over means of parts, and the number of ties."""
    results = results_of(rows, result)
    return {
        "accuracy": float(results.mean()),
        "n": len(rows),
        "ties": sum(row.tied for row in rows),
        "intervals": {"accuracy": bounds(drawn_means(results))},
    }


def over_all(rows: Sequence[JudgedCase], result: Callable[[JudgedCase], float]) -> Measures:
    """Measures all rows of a file alike, whatever their part: accuracy, and how much length alone explains.

    `longer_wins` is the accuracy of a judge that prefers the longer answer, `length_correlation` Spearman's
    correlation of rewards with lengths.
    """
    prompts = [repr(row.case.conversation) for row in rows]
    results = results_of(rows, result)

    def drawn(weights: Floats) -> dict[str, float | None]:
        return {"accuracy": float((results * weights).sum() / weights.sum())}

    lengths = by_length([row.case for row in rows])
    longer = np.concatenate([np.concatenate([row.good, row.bad]) for row in lengths])
    rewards = np.concatenate([np.concatenate([row.good, row.bad]) for row in rows])
    return {
        **accuracy(rows, result),
        "intervals": by_prompt(prompts, drawn),
        "longer_wins": float(results_of(lengths, result).mean()),
        "length_correlation": spearman(rewards, longer) if np.isfinite(rewards).all() else None,
        "not_finite": int((~np.isfinite(rewards)).sum()),
        "constant": bool(np.ptp(rewards) < 1e-6),
    }


def conversation(prompt: Any) -> tuple[Turn, ...]:
    """Returns the turns of a prompt, which is a text, one turn of the user's, or a list of turns."""
    if isinstance(prompt, str):
        return (Turn("user", prompt),)
    if not isinstance(prompt, list) or not prompt:
        raise ValueError("prompt is neither a text nor a list of turns")
    return tuple(Turn(text(turn["role"]), text(turn["content"])) for turn in prompt)


def text(value: Any) -> str:
    """Returns the value if it is a text; else raises ValueError."""
    if not isinstance(value, str):
        raise ValueError(f"{str(value)[:40]!r} is not a text")
    return value


def texts(value: Any) -> tuple[str, ...]:
    """Returns the value if it is a list of texts that is not empty; else raises ValueError."""
    if not isinstance(value, list) or not value:
        raise ValueError("it has no list of answers")
    return tuple(map(text, value))


def has_texts(row: Row) -> bool:
    """Returns whether the row has one chosen and one rejected answer."""
    return isinstance(row.get("chosen"), str) and isinstance(row.get("rejected"), str) and "prompt" in row


def has_lists(row: Row) -> bool:
    """Returns whether the row has lists of chosen and of rejected answers."""
    return isinstance(row.get("chosen"), list) and isinstance(row.get("rejected"), list) and "prompt" in row
