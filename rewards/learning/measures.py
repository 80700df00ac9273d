"""How far predictions are from labels: pure statistics, None where one is not defined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from rewards.learning.data import Floats, Task

LOWEST, HIGHEST = 0, 4
Measures = dict[str, float | int | None]


def attribute_measures(predicted: Floats, labels: Floats, *, mean: float) -> Measures:
    """One attribute over the responses that have a label; `mean` is the training mean, the trivial predictor."""
    known = np.isfinite(labels)
    p, y = predicted[known], labels[known]
    if not len(y):
        return {"n": 0, "rmse": None, "mae": None, "spearman": None, "qwk": None, "mean_rmse": None, "r2": None}
    mean_rmse = rmse(np.full_like(y, mean), y)
    return {
        "n": len(y),
        "rmse": rmse(p, y),
        "mae": float(np.abs(p - y).mean()),
        "spearman": spearman(p, y),
        "qwk": quadratic_weighted_kappa(as_label(p), as_label(y)),
        "mean_rmse": mean_rmse,
        "r2": 1 - (rmse(p, y) / mean_rmse) ** 2 if mean_rmse else None,
    }


def rmse(predicted: Floats, labels: Floats) -> float:
    return float(np.sqrt(((predicted - labels) ** 2).mean()))


def as_label(values: Floats) -> Floats:
    return np.clip(np.rint(values), LOWEST, HIGHEST)


def spearman(a: Floats, b: Floats) -> float | None:
    """Pearson's correlation of average ranks; undefined when either side is constant."""
    x, y = _ranks(a), _ranks(b)
    if x.std() == 0 or y.std() == 0:
        return None
    return float(np.corrcoef(x, y)[0, 1])


def quadratic_weighted_kappa(a: Floats, b: Floats) -> float | None:
    """Cohen's kappa with quadratic weights in closed form; undefined when chance alone would agree fully."""
    by_chance = a.var() + b.var() + (a.mean() - b.mean()) ** 2
    return float(1 - ((a - b) ** 2).mean() / by_chance) if by_chance > 0 else None


def pairwise(tasks: Sequence[Task], rewards: Sequence[float], weights: Mapping[str, float]) -> Measures:
    """Over all pairs of responses of a task whose labels differ: is the better one's reward higher? A tie is wrong.

    The better one is told by the people's preference where they gave one, else by the labels' weighted sum.
    """
    pairs = right = tied = longer = 0
    start = 0
    for task in tasks:
        for i, j in combinations(range(len(task.responses)), 2):
            order = _better(task, i, j, weights)
            if order == 0:
                continue
            difference = rewards[start + j] - rewards[start + i]
            pairs += 1
            right += difference * order > 0
            tied += difference == 0
            longer += (len(task.responses[j].text) - len(task.responses[i].text)) * order > 0
        start += len(task.responses)
    if not pairs:
        return {"pairs": 0, "ties": 0, "accuracy": None, "longer_wins": None}
    return {"pairs": pairs, "ties": tied, "accuracy": right / pairs, "longer_wins": longer / pairs}


def beyond_chance(gains: Floats) -> bool:
    """Whether the mean of the gains lies more than one standard error above 0; one gain alone tells nothing."""
    if len(gains) < 2:
        return False
    return bool(gains.mean() > gains.std(ddof=1) / np.sqrt(len(gains)))


def human_ceiling(tasks: Sequence[Task], predicted: Floats, attribute: str, index: int) -> Measures:
    """RMSE of the other raters' mean against the rater left out, and of the model against the same ratings."""
    human: list[float] = []
    model: list[float] = []
    responses = [response for task in tasks for response in task.responses]
    for row, response in enumerate(responses):
        given = [rating[attribute] for rating in response.ratings if attribute in rating]
        if len(given) < 2:
            continue
        for rating in given:
            human.append(rating - (sum(given) - rating) / (len(given) - 1))
            model.append(rating - predicted[row, index])
    if not human:
        return {"n": 0, "rmse": None, "model_rmse": None}
    return {"n": len(human), "rmse": _root_mean_square(human), "model_rmse": _root_mean_square(model)}


def weighted_sum(scores: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return sum(weights[name] * scores[name] for name in weights)


def _better(task: Task, i: int, j: int, weights: Mapping[str, float]) -> int:
    """1 if response j is better, -1 if i is, 0 if nobody can tell."""
    if task.preference and len(task.responses) == 2:
        return 1 if task.preference > 0 else -1
    first, second = task.responses[i].scores, task.responses[j].scores
    if not set(weights) <= set(first) & set(second):
        return 0
    difference = weighted_sum(second, weights) - weighted_sum(first, weights)
    # Sums of the same labels in another order differ by a rounding error.
    return 0 if abs(difference) < 1e-9 else int(np.sign(difference))


def _ranks(values: Floats) -> Floats:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[inverse], dtype=np.float64)


def _root_mean_square(errors: Sequence[float]) -> float:
    return float(np.sqrt(np.square(errors).mean()))
