"""Ridges as a training run fits them, and what they predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.evidence.data_sets import DataSet
from rewards import promotion
from rewards.learning.baseline import Baseline, examples
from rewards.learning.config import RIDGE_ALPHAS
from rewards.learning.data import Floats
from rewards.learning.finetune import Rows
from rewards.learning.objectives import answers_of
from rewards.learning.ridge import Ridge, fit_ridge
from rewards.learning.splits import Part

Random = np.random.Generator
Predictions = dict[str, promotion.Predicted]


def some_of(data: DataSet, prompts: Sequence[str]) -> DataSet:
    """The tasks of some prompts, with the features of their rows."""
    chosen = set(prompts)
    numbers = [number for number, task in enumerate(data.tasks) if task.prompt_hash in chosen]
    rows = [row for number in numbers for row in data.places[number]]
    counter = iter(range(len(rows)))
    places = [[next(counter) for _ in data.places[number]] for number in numbers]
    tasks = [data.tasks[number] for number in numbers]
    return replace(data, tasks=tasks, features=[depth[rows] for depth in data.features], places=places)


def shuffled(data: DataSet, random: Random) -> DataSet:
    """The same tasks with the labels of other responses, or with preferences by the toss of a coin."""
    labels = [answer.scores for task in data.tasks for answer in task.responses]
    order = iter(random.permutation(len(labels)).tolist())
    tasks = [
        replace(
            task,
            responses=tuple(replace(answer, scores=labels[next(order)]) for answer in task.responses),
            preference=task.preference and int(random.choice([-1, 1])),
        )
        for task in data.tasks
    ]
    return replace(data, tasks=tasks)


def baseline_of(data: DataSet) -> Baseline:
    """The ridge of a training run, at the depth with the lower left-out error."""
    answers = answers_of(data.tasks, data.attributes, reward=data.weights, rounded=False, by_agreement=False)
    parts, reward = [Part(data.tasks, Rows([], answers, []))], tuple(data.weights.values())
    tried: list[tuple[Floats, Ridge, int]] = []
    for features in data.features:
        rows = examples(features, parts, reward)
        ridge = fit_ridge(rows.features, rows.targets, rows.prompts, alphas=RIDGE_ALPHAS, blocks=data.blocks)
        tried.append((features, replace(ridge, bias=rows.bias(ridge.weight, ridge.bias)), len(tried)))
    features, ridge, depth = min(tried, key=lambda trial: float(np.mean(np.square(trial[1].held_out_rmse))))
    return Baseline(features, parts, ridge, data.blocks, reward, 0, depth, data.features)


def predicted(data: DataSet, scores: Floats) -> Predictions:
    """Scores [rows, attributes] by response id."""
    ids = [answer.id for task in data.tasks for answer in task.responses]
    return {
        name: promotion.Predicted(dict(zip(data.attributes, row, strict=True)), float(sum(row)))
        for name, row in zip(ids, scores.tolist(), strict=True)
    }


def applied(ridge: Ridge, depth: int, data: DataSet) -> Floats:
    """[rows, attributes]: what a ridge predicts that reads the features of this depth."""
    return np.asarray(data.features[depth] @ ridge.weight.T + ridge.bias, dtype=np.float64)


def divided(data: DataSet, random: Random, *sizes: int) -> list[DataSet]:
    """Parts of so many prompts each, drawn at random, and the rest."""
    prompts = random.permutation(data.prompts()).tolist()
    bounds = np.cumsum([0, *sizes]).tolist()
    return [some_of(data, prompts[low:high]) for low, high in zip(bounds, [*bounds[1:], None], strict=True)]


def error_of(model: Baseline, data: DataSet) -> float:
    """The RMSE on the rated answers, or the share of wrong pairs."""
    measured = promotion.held_out(
        data.tasks, predicted(data, applied(model.ridge, model.layers, data)), weights=data.weights
    )
    if measured.labels:
        return float(np.sqrt(sum(measured.squared_errors.values()) / sum(measured.labels.values())))
    return sum(measured.wrong.values()) / measured.pairs
