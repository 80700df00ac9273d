"""Whether the gate promotes first models that have learnt, and later ones that are better, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.evidence.data_sets import DataSet
from benchmarks.evidence.models import Predictions, Random, applied, baseline_of, divided, predicted, shuffled
from rewards import promotion
from rewards.learning.baseline import cross_fitted_scores
from rewards.learning.config import RIDGE_ALPHAS
from rewards.learning.data import Task
from rewards.learning.metrics import CONSTANT

RETRAININGS = 20
WORSE = 0.017
"""By how much the squared error of a worse candidate is larger than the champion's."""

# First models ----------------------------------------------------------------------------------------------


def first_model(data: DataSet, random: Random) -> promotion.Verdict | None:
    """The gate's verdict about the first model of a project with these labels."""
    held, train = divided(data, random, round(0.1 * len(data.prompts())))
    baseline = baseline_of(train)
    crossed = cross_fitted_scores(replace(baseline, seed=int(random.integers(1 << 30))), RIDGE_ALPHAS)
    if crossed is None:
        return None
    scores, means = crossed
    labels = baseline.labels()
    middle = np.nanmean(labels, axis=0) if np.isfinite(labels).any() else np.zeros(len(data.attributes))
    theirs = applied(baseline.ridge, baseline.layers, held)
    tasks = [*held.tasks, *train.tasks]
    constant = [name for i, name in enumerate(data.attributes) if theirs[:, i].std() < CONSTANT]
    return promotion.decide(
        promotion.held_out(
            tasks,
            predicted(train, scores) | predicted(held, theirs),
            weights=data.weights,
            metrics={"constant": constant},
        ),
        None,
        promotion.held_out(
            tasks,
            predicted(train, means) | predicted(held, np.broadcast_to(middle, theirs.shape)),
            weights=data.weights,
        ),
        longer=promotion.by_length(tasks, weights=data.weights),
    )


def is_promoted(verdict: promotion.Verdict | None) -> bool:
    return verdict is not None and verdict.promote


def shuffled_promoted(data: DataSet, random: Random) -> bool:
    return is_promoted(first_model(shuffled(divided(data, random, data.drawn)[0], random), random))


def true_promoted(data: DataSet, random: Random) -> bool:
    return is_promoted(first_model(divided(data, random, data.drawn)[0], random))


def learns(data: DataSet) -> bool:
    """Whether the ridge of all prompts is better than the mean and than *longer wins*, as far as anybody can tell.

    Where it is not, refusing its models is right, and the share of promoted ones says nothing about the gate.
    """
    verdict = first_model(data, np.random.default_rng(0))
    return verdict is not None and verdict.gain > 0 and (verdict.over_length is None or verdict.over_length > 0)


# Later models ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rivals:
    """What two models that have learnt from different prompts predict of tasks that neither knows."""

    data: DataSet
    tasks: list[Task]
    first: Predictions
    second: Predictions

    def mixed(self, random: Random) -> tuple[Predictions, Predictions]:
        """A champion and a candidate that are equal by construction: a coin says per prompt which is which."""
        champion, candidate = {}, {}
        sides = {task.prompt_hash: bool(random.integers(2)) for task in self.tasks}
        for task in self.tasks:
            one, other = (self.second, self.first) if sides[task.prompt_hash] else (self.first, self.second)
            for answer in task.responses:
                champion[answer.id], candidate[answer.id] = one[answer.id], other[answer.id]
        return champion, candidate


def rivals(data: DataSet, random: Random) -> Rivals:
    third = len(data.prompts()) // 3
    one, other, rest = divided(data, random, third, third)
    both = [baseline_of(part) for part in (one, other)]
    first, second = (predicted(rest, applied(model.ridge, model.layers, rest)) for model in both)
    return Rivals(data, rest.tasks, first, second)


def replaces(
    pair: Rivals, champion: Predictions, candidate: Predictions, tasks: Sequence[Task], *, look: int = 1
) -> bool:
    known, new = (promotion.held_out(tasks, values, weights=pair.data.weights) for values in (champion, candidate))
    return promotion.decide(new, known, known, look=look).promote


def some_tasks(pair: Rivals, prompts: int, random: Random) -> list[Task]:
    chosen = set(random.permutation(sorted({task.prompt_hash for task in pair.tasks}))[:prompts].tolist())
    return [task for task in pair.tasks if task.prompt_hash in chosen]


def equal_replaces(pair: Rivals, prompts: int, random: Random) -> bool:
    champion, candidate = pair.mixed(random)
    return replaces(pair, champion, candidate, some_tasks(pair, prompts, random))


def worse_replaces(pair: Rivals, prompts: int, random: Random) -> bool:
    champion, candidate = pair.mixed(random)
    worse = spoilt(pair, candidate, random)
    return replaces(pair, champion, worse, some_tasks(pair, prompts, random))


def spoilt(pair: Rivals, predictions: Predictions, random: Random) -> Predictions:
    """The same predictions with noise, which makes their squared error larger by WORSE."""
    answers = [answer for task in pair.tasks for answer in task.responses]
    errors = [
        (predictions[answer.id].scores[key] - label) ** 2 for answer in answers for key, label in answer.scores.items()
    ]
    if errors:
        spread = float(np.sqrt(WORSE * np.mean(errors)))
    else:
        # Of compared answers only the order counts: so much noise turns a few pairs round.
        spread = float(np.sqrt(10 * WORSE) * np.std([value.reward for value in predictions.values()]))
    noisy = {}
    for name, value in predictions.items():
        scores = {key: score + spread * random.normal() for key, score in value.scores.items()}
        noisy[name] = promotion.Predicted(scores, sum(scores.values()))
    return noisy


def any_of_20_replaces(pair: Rivals, prompts: int, random: Random) -> bool:
    """Whether one of twenty equal candidates in a row replaces the champion, on the same held-out prompts."""
    tasks = some_tasks(pair, prompts, random)
    for look in range(1, RETRAININGS + 1):
        champion, candidate = pair.mixed(random)
        if replaces(pair, champion, candidate, tasks, look=look):
            return True
    return False
