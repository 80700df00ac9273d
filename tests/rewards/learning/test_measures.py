from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import cohen_kappa_score

from rewards.learning.data import Response, Task, Turn
from rewards.learning.measures import (
    attribute_measures,
    human_ceiling,
    pairwise,
    quadratic_weighted_kappa,
    spearman,
)

RNG = np.random.default_rng(0)
A, B = RNG.integers(0, 5, 200).astype(float), RNG.integers(0, 5, 200).astype(float)
WEIGHTS = {"helpfulness": 1.0}


def make_task(*scores: float, preference: int | None = None, texts: tuple[str, ...] = ("", "", "")) -> Task:
    pairs = zip(scores, texts, strict=False)
    responses = tuple(Response("r", text, {"helpfulness": score}, {}, ()) for score, text in pairs)
    return Task("t", "h", (Turn("user", "q"),), responses, preference)


def test_kappa_equals_scikit_learn() -> None:
    assert quadratic_weighted_kappa(A, B) == pytest.approx(cohen_kappa_score(A, B, weights="quadratic"))


def test_spearman_equals_scipy_with_ties() -> None:
    assert spearman(A, B) == pytest.approx(spearmanr(A, B).statistic)


def test_what_is_not_defined_is_none() -> None:
    ones = np.ones(4)
    assert quadratic_weighted_kappa(ones, ones) is None
    assert spearman(ones, A[:4]) is None


def test_the_mean_predictor_explains_nothing() -> None:
    measures = attribute_measures(np.full(3, 2.0), np.array([1.0, 2.0, 3.0]), mean=2.0)
    assert measures["r2"] == 0
    assert measures["rmse"] == measures["mean_rmse"] == pytest.approx(np.sqrt(2 / 3))


def test_predictions_are_clamped_only_for_kappa() -> None:
    measures = attribute_measures(np.array([9.0, -5.0]), np.array([4.0, 0.0]), mean=2.0)
    assert measures["qwk"] == 1
    assert measures["mae"] == 5


def test_missing_labels_are_not_counted() -> None:
    assert attribute_measures(np.zeros(2), np.array([1.0, np.nan]), mean=0.0)["n"] == 1
    assert attribute_measures(np.zeros(1), np.array([np.nan]), mean=0.0)["rmse"] is None


def test_a_tie_of_rewards_is_wrong_and_reported() -> None:
    assert pairwise([make_task(1, 2)], [0.5, 0.5], WEIGHTS) == {"pairs": 1, "ties": 1, "accuracy": 0, "longer_wins": 0}


def test_accuracy_is_over_all_pairs_of_all_tasks() -> None:
    measures = pairwise([make_task(1, 2, 3), make_task(4, 0)], [0.1, 0.2, 0.3, 0.0, 1.0], WEIGHTS)
    assert measures["pairs"] == 4
    assert measures["accuracy"] == 0.75


def test_a_pair_of_equal_labels_is_no_pair() -> None:
    assert pairwise([make_task(2, 2)], [0.0, 1.0], WEIGHTS)["pairs"] == 0


def test_the_preference_of_people_goes_before_their_ratings() -> None:
    assert pairwise([make_task(1, 2, preference=-3)], [1.0, 0.0], WEIGHTS)["accuracy"] == 1


def test_longer_wins_is_counted_on_the_same_pairs() -> None:
    measures = pairwise([make_task(1, 2, texts=("long text", "short"))], [0.0, 1.0], WEIGHTS)
    assert (measures["accuracy"], measures["longer_wins"]) == (1, 0)


def test_the_human_ceiling_leaves_each_rater_out() -> None:
    ratings = tuple({"helpfulness": value} for value in (1, 2, 3))
    task = Task("t", "h", (), (Response("r", "", {}, {}, ratings),), None)
    ceiling = human_ceiling([task], np.array([[2.0]]), "helpfulness", 0)
    assert ceiling["n"] == 3
    assert ceiling["rmse"] == pytest.approx(np.sqrt((1.5**2 + 0 + 1.5**2) / 3))
    assert ceiling["model_rmse"] == pytest.approx(np.sqrt(2 / 3))
