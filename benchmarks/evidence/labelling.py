"""What more labels bring, beside what the learning curve foretells, and whether their order matters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.evidence.data_sets import DataSet
from benchmarks.evidence.models import Random, baseline_of, divided, error_of, some_of
from rewards.learning.baseline import Baseline, ensemble
from rewards.learning.config import RIDGE_ALPHAS
from rewards.learning.curve import Rows, learning_curve

ORDERED_AT_ONCE, MOST_ORDERED = 30, 300


def curve_covers(data: DataSet, random: Random) -> bool:
    """Whether the curve's interval for twice the labels holds what twice the labels bring."""
    now, later, rest = divided(data, random, data.doubled, data.doubled)
    baseline = baseline_of(now)
    labels, pairs = baseline.labels(), baseline.pairs()
    count = int(np.isfinite(labels).any(axis=1).sum()) or len(pairs)
    rows = Rows(now.features, labels, baseline.prompts(), baseline.reward, pairs)
    outcome = learning_curve(
        rows, alphas=RIDGE_ALPHAS, blocks=data.blocks, seed=int(random.integers(1 << 30)), more=count
    )
    if outcome is None:
        raise SystemExit(f"{data.name}: too few prompts for a curve")
    both = some_of(data, [*now.prompts(), *later.prompts()])
    before, after = (error_of(model, rest) for model in (baseline, baseline_of(both)))
    outlook: dict[str, float] = outcome["outlook"]
    return bool(outlook["low"] <= before - after <= outlook["high"])


def ordering_gain(data: DataSet, random: Random) -> float:
    """By how much the error is lower, on the way to all labels, where the least certain prompts are labelled first.

    Both orders begin with the same prompts and end with all; in between the gain is the mean over the steps.
    """
    third = len(data.prompts()) // 3
    rest, pool = divided(data, random, third)
    prompts = random.permutation(pool.prompts()).tolist()[:MOST_ORDERED]
    by_chance, by_doubt = (errors_on_the_way(pool, rest, prompts, uncertain=uncertain) for uncertain in (False, True))
    return float(np.mean(by_chance[1:-1]) - np.mean(by_doubt[1:-1]))


def errors_on_the_way(pool: DataSet, rest: DataSet, prompts: Sequence[str], *, uncertain: bool) -> list[float]:
    """The errors on the rest after each step of ORDERED_AT_ONCE prompts, from as many to all."""
    labelled, waiting, errors = list(prompts[:ORDERED_AT_ONCE]), list(prompts[ORDERED_AT_ONCE:]), []
    while True:
        model = baseline_of(some_of(pool, labelled))
        errors.append(error_of(model, rest))
        if not waiting:
            return errors
        if uncertain:
            doubts = doubts_of(model, some_of(pool, waiting))
            waiting.sort(key=lambda prompt: -doubts[prompt])
        labelled += waiting[:ORDERED_AT_ONCE]
        del waiting[:ORDERED_AT_ONCE]


def doubts_of(model: Baseline, data: DataSet) -> dict[str, float]:
    """The ensemble's uncertainty about each prompt, as the mean over its responses."""
    deviations = ensemble(model, model.features).deviation(data.features[model.layers], model.reward)
    by_prompt: dict[str, list[float]] = {}
    for task, rows in zip(data.tasks, data.places, strict=True):
        by_prompt.setdefault(task.prompt_hash, []).extend(deviations[rows].tolist())
    return {prompt: float(np.mean(values)) for prompt, values in by_prompt.items()}
