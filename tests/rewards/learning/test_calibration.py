from __future__ import annotations

import numpy as np
import pytest

from rewards.learning.intervals import calibration, line, pairwise_calibration

RNG = np.random.default_rng(0)


def test_predictions_that_are_right_on_average_are_calibrated() -> None:
    predicted = RNG.uniform(0, 4, 20_000)
    result = calibration(predicted, predicted + RNG.normal(0, 1, 20_000))
    assert (result["slope"], result["intercept"]) == (pytest.approx(1, abs=0.03), pytest.approx(0, abs=0.06))
    assert result["error"] < 0.05


def test_labels_at_half_the_size_have_half_the_slope() -> None:
    predicted = np.array([0.0, 2.0, 4.0])
    assert np.array(line(predicted, predicted / 2 + 1)) == pytest.approx(np.array([0.5, 1]))


def test_the_bins_hold_all_rows_once() -> None:
    bins = calibration(RNG.normal(size=103), RNG.normal(size=103))["bins"]
    assert sum(group["n"] for group in bins) == 103
    assert len(bins) == 10


def test_constant_predictions_have_no_line() -> None:
    result = calibration(np.full(5, 2.0), np.arange(5.0))
    assert (result["slope"], result["intercept"], result["error"]) == (None, None, pytest.approx(1.2))


def test_pairs_drawn_by_their_own_probability_are_calibrated() -> None:
    said = RNG.normal(0, 2, 50_000)
    better_is_first = RNG.random(50_000) < 1 / (1 + np.exp(-said))
    assert pairwise_calibration(np.where(better_is_first, said, -said))["ece"] < 0.02


def test_certainty_that_is_always_wrong_is_the_worst_error() -> None:
    assert pairwise_calibration(np.full(4, -100.0))["ece"] == pytest.approx(1)


def test_a_tie_says_half_and_is_half_right() -> None:
    result = pairwise_calibration(np.zeros(3))
    assert result == {"n": 3, "ece": 0, "bins": [{"n": 3, "confidence": 0.5, "accuracy": 0.5}]}
