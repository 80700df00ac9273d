from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import cohen_kappa_score

from rewards.learning.data import Response, Task
from rewards.learning.metrics import (
    agreeing,
    attribute_measures,
    human_ceiling,
    quadratic_weighted_kappa,
    ranked,
    spearman,
)

RNG = np.random.default_rng(0)
A, B = RNG.integers(0, 5, 200).astype(float), RNG.integers(0, 5, 200).astype(float)
PROMPTS = [f"p{number // 2}" for number in range(200)]


def test_kappa_equals_scikit_learn() -> None:
    assert quadratic_weighted_kappa(A, B) == pytest.approx(cohen_kappa_score(A, B, weights="quadratic"))


def test_spearman_equals_scipy_with_ties() -> None:
    assert spearman(A, B) == pytest.approx(spearmanr(A, B).statistic)


def test_a_row_of_weight_two_counts_as_two_rows() -> None:
    times = RNG.integers(0, 3, 200)
    first, second = A.repeat(times), B.repeat(times)
    assert ranked(A, B)(times.astype(float)) == pytest.approx(spearman(first, second))
    assert agreeing(A, B)(times.astype(float)) == pytest.approx(quadratic_weighted_kappa(first, second))


def test_what_is_not_defined_is_none() -> None:
    ones = np.ones(4)
    assert quadratic_weighted_kappa(ones, ones) is None
    assert spearman(ones, A[:4]) is None
    assert spearman(A[:0], B[:0]) is None


def test_rounding_errors_are_no_order() -> None:
    scores = 2 + np.array([1e-9, 0.0, 2e-9, 3e-9])
    measured = attribute_measures(scores, np.array([0.0, 1.0, 2.0, 3.0]), mean=1.5)
    assert (measured["spearman"], measured["qwk"]) == (None, 0)
    assert measured["reason"] == "the same score for every response"


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


def test_a_prediction_that_is_no_number_is_said_and_leaves_all_undefined() -> None:
    measures = attribute_measures(np.array([1.0, np.nan]), np.array([1.0, 2.0]), mean=0.0)
    assert (measures["not_finite"], measures["rmse"], measures["spearman"]) == (1, None, None)


def test_the_headline_measures_have_intervals_that_hold_them() -> None:
    measures = attribute_measures(A + 0.5 * B, A, mean=2.0, prompts=PROMPTS)
    assert measures["prompts"] == 100
    for name in ("rmse", "mae", "spearman", "qwk"):
        low, high = measures["intervals"][name]
        assert low < measures[name] < high


def test_constant_predictions_have_an_error_but_no_order() -> None:
    measures = attribute_measures(np.full(200, 2.0), A, mean=2.0, prompts=PROMPTS)
    assert (measures["spearman"], measures["intervals"]["spearman"], measures["calibration"]["slope"]) == (None,) * 3
    assert measures["intervals"]["rmse"]


def test_the_human_ceiling_leaves_each_rater_out() -> None:
    ceiling = human_ceiling([rated(1, 2, 3)], np.array([[2.0]]), "helpfulness", 0)
    assert ceiling["n"] == 3
    assert ceiling["rmse"] == pytest.approx(np.sqrt((1.5**2 + 0 + 1.5**2) / 3))
    assert ceiling["model_rmse"] == pytest.approx(np.sqrt(2 / 3))


def test_raters_who_agree_are_a_ceiling_of_one() -> None:
    tasks = [rated(level, level) for level in range(5)]
    ceiling = human_ceiling(tasks, np.array([[4.0 - level] for level in range(5)]), "helpfulness", 0)
    assert (ceiling["qwk"], ceiling["spearman"]) == (1, pytest.approx(1))
    assert (ceiling["model_qwk"], ceiling["model_spearman"]) == (-1, pytest.approx(-1))


def test_one_rating_a_response_is_no_ceiling() -> None:
    assert human_ceiling([rated(1)], np.array([[2.0]]), "helpfulness", 0)["rmse"] is None


def rated(*levels: int) -> Task:
    ratings = tuple({"helpfulness": level} for level in levels)
    return Task("t", "h", (), (Response("r", "", {}, {}, ratings),), None)


def test_a_constant_that_no_float_holds_exactly_is_constant_under_any_weights() -> None:
    tenths, weights = np.full(200, 0.1) * 3, RNG.integers(1, 7, 200).astype(float)
    assert ranked(tenths, A)(weights) is None
    assert agreeing(tenths, tenths)(weights) is None
