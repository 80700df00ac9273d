"""Measures parts of the rows: by turns, by length, and where the rows say so, by model, source and language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from rewards.learning.data import Floats, Task, prompts_of
from rewards.learning.intervals import by_prompt
from rewards.learning.metrics import Measures, root_mean_square, spearman
from rewards.learning.pairs import Pair, accuracy, differences_of

MOST_VALUES = 20
"""Each kind of slice shows its largest parts, at most this many."""
LENGTHS = ("short", "medium", "long")


def slices(tasks: Sequence[Task], errors: Floats, rewards: Floats, pairs: Sequence[Pair]) -> Measures:
    """Returns by kind and part the RMSE over all labels and the accuracy over the pairs within the part.

    errors [responses, attributes]: prediction minus label, NaN where there is no label; rewards [responses].
    """
    prompts, by_slice = prompts_of(tasks), {}
    for kind, parts in _kinds(tasks).items():
        largest = [part for part, _ in Counter(parts).most_common(MOST_VALUES)]
        rows = {part: np.array([item == part for item in parts]) for part in largest if part}
        if len(rows) > 1 or kind == "turns":
            by_slice[kind] = {part: _part(here, prompts, errors, rewards, pairs) for part, here in rows.items()}
    return by_slice


def length_correlation(tasks: Sequence[Task], rewards: Floats, labels: Floats, weights: Floats) -> Measures:
    """Returns Spearman's correlation of a response's length in characters with its reward and its labelled reward.

    rewards [responses]; labels [responses, attributes], NaN where one is missing; weights [attributes].
    """
    lengths = _lengths(tasks)
    labelled = labels @ weights
    known = np.isfinite(labelled)
    finite = bool(np.isfinite(rewards).all())
    return {
        "n": len(lengths),
        "reward": spearman(rewards, lengths) if finite else None,
        "label": spearman(labelled[known], lengths[known]),
        "labelled": int(known.sum()),
    }


def _kinds(tasks: Sequence[Task]) -> dict[str, list[str]]:
    """Returns each kind of slice with the part of every response."""
    asked = [sum(turn.role == "user" for turn in task.conversation) for task in tasks for _ in task.responses]
    return {
        "turns": ["multi" if turns > 1 else "single" for turns in asked],
        "length": _terciles(_lengths(tasks)),
        "model": [response.model for task in tasks for response in task.responses],
        "source": [task.source for task in tasks for _ in task.responses],
        "language": [task.language for task in tasks for _ in task.responses],
    }


def _terciles(lengths: Floats) -> list[str]:
    edges = np.quantile(lengths, [1 / 3, 2 / 3])
    return [LENGTHS[place] for place in np.searchsorted(edges, lengths, side="left")]


def _lengths(tasks: Sequence[Task]) -> Floats:
    return np.array([len(response.text) for task in tasks for response in task.responses], dtype=np.float64)


def _part(here: Floats, prompts: Sequence[str], errors: Floats, rewards: Floats, pairs: Sequence[Pair]) -> Measures:
    rows, columns = np.nonzero(np.isfinite(errors) & here[:, None].astype(bool))
    inside = [pair for pair in pairs if here[pair.better] and here[pair.worse]]
    return {
        "n": int(here.sum()),
        **_error(errors[rows, columns], [prompts[row] for row in rows.tolist()]),
        "pairwise": accuracy(inside, differences_of(inside, rewards.tolist())),
    }


def _error(errors: Floats, prompts: Sequence[str]) -> Mapping[str, object]:
    if not len(errors):
        return {"labels": 0, "rmse": None, "intervals": {}}
    statistic = root_mean_square(errors)
    intervals = by_prompt(prompts, lambda w: {"rmse": statistic(w)})
    return {"labels": len(errors), "rmse": statistic(np.ones(len(errors))), "intervals": intervals}
