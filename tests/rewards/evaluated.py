"""Evaluations as the learning core leaves them, without a model."""

from copy import deepcopy
from functools import cache
from typing import Any

import numpy as np

from rewards.learning.intervals import pairwise_calibration
from rewards.learning.metrics import attribute_measures
from rewards.models import Evaluation, RewardModel

HASH = "0" * 64


def make_evaluation(model: RewardModel, *, rmse: float = 0.9, name: str = "validation", **fields: Any) -> Evaluation:
    """A snapshot's metrics, small: one number of each kind that the comparison knows."""
    given = {"data_hash": HASH, "metrics": snapshot_metrics(rmse), **fields}
    return Evaluation.objects.create(reward_model=model, name=name, **given)


def snapshot_metrics(rmse: float, *, accuracy: float = 0.75) -> dict[str, Any]:
    pairs = {"pairs": 8, "ties": 0, "accuracy": accuracy, "intervals": {"accuracy": [0.5, 0.9]}}
    calibrated = {"longer_wins": 0.5, "calibration": {"ece": 0.1, "bins": []}}
    return {
        "rmse": rmse,
        "n": 16,
        "intervals": {"rmse": [rmse - 0.1, rmse + 0.1]},
        "attributes": {"helpfulness": {"n": 16, "rmse": rmse, "spearman": None, "calibration": {"slope": 0.8}}},
        "pairwise": {**pairs, **calibrated, "by_strength": {"preference 2": pairs}},
        "human": {"helpfulness": {"n": 16, "rmse": 0.5}},
        "slices": {"turns": {"single": {"n": 16, "labels": 16, "rmse": rmse, "pairwise": pairs}}},
    }


def benchmark_metrics(accuracy: float) -> dict[str, Any]:
    return {
        "overall": {"accuracy": None, "reason": "Math has 1 of 183 rows"},
        "domains": {"Math": {"accuracy": accuracy, "n": 1, "ties": 0, "intervals": {"accuracy": None}}},
        "all": {"accuracy": accuracy, "n": 1, "longer_wins": 1.0, "length_correlation": 0.3},
    }


def noisy_metrics(seed: int, noise: float, attributes: list[str]) -> dict[str, Any]:
    """As real ones look: intervals of real width, for pages that people look at."""
    return deepcopy(_noisy_metrics(seed, noise, tuple(attributes)))


# The intervals of one set take a quarter of a second, and dozens of tests want the same one.
@cache
def _noisy_metrics(seed: int, noise: float, attributes: tuple[str, ...]) -> dict[str, Any]:
    dice = np.random.default_rng(seed)
    labels = dice.integers(0, 5, 200).astype(float)
    prompts = [str(number // 2) for number in range(200)]
    guesses = [labels + dice.normal(0, noise, 200) for _ in attributes]
    measures = {
        name: attribute_measures(guess, labels, mean=2.0, prompts=prompts)
        for name, guess in zip(attributes, guesses, strict=True)
    }
    base = snapshot_metrics(noise, accuracy=1 - noise / 4)
    pairs = {**base["pairwise"], "calibration": pairwise_calibration(dice.normal(1, noise, 200))}
    return {**base, "attributes": measures, "pairwise": pairs}
