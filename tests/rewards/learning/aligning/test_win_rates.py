"""Win rates against values computed by hand, and against another library's regression."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from rewards.learning.aligning.win_rates import PENALTY, length_controlled, length_terms, win_rates


def rewards(*differences: float) -> tuple[np.ndarray, np.ndarray]:
    """The policy's and the base's, which differ by so much."""
    base = np.full(len(differences), 0.5)
    return base + np.array(differences), base


def test_a_draw_counts_half() -> None:
    rates = win_rates(*rewards(1, 2, 0, -1), longer_by=np.zeros(4))
    assert (rates.win_rate, rates.ties, rates.prompts) == (2.5 / 4, 1, 4)


def test_without_a_difference_in_length_only_the_penalty_moves_the_rate() -> None:
    """75 of 100: a = ln 3, less the penalty's share."""
    wins = np.repeat([1.0, 0.0], [75, 25])
    assert length_controlled(wins, length_terms(np.full(100, 7.0)), np.ones(100)) == pytest.approx(0.75, abs=2e-4)


def test_the_share_at_equal_lengths_is_the_one_computed_by_hand() -> None:
    """Longer answers win 80 of 100, shorter ones 50: the middle of both log odds, ln 4 and 0, is ln 2, so 2 of 3."""
    wins = np.concatenate([np.repeat([1.0, 0.0], [80, 20]), np.repeat([1.0, 0.0], [50, 50])])
    longer_by = np.repeat([9.0, -9.0], 100)
    assert length_controlled(wins, length_terms(longer_by), np.ones(200)) == pytest.approx(2 / 3, abs=2e-4)


def test_a_policy_that_wins_by_its_length_draws_at_equal_lengths() -> None:
    """Longer on 60 prompts, of which it wins 54, and shorter on 20, of which it wins 2: ln 9 and -ln 9 meet at 0."""
    won = np.concatenate([np.repeat([1.0, -1.0], [54, 6]), np.repeat([1.0, -1.0], [2, 18])])
    rates = win_rates(*rewards(*won), longer_by=np.repeat([10.0, -10.0], [60, 20]))
    assert rates.win_rate == 0.7
    assert rates.length_controlled == pytest.approx(0.5, abs=1e-3)


def test_the_regression_is_another_library_s() -> None:
    dice = np.random.default_rng(5)
    longer_by = dice.normal(3, 20, 60)
    wins = (dice.random(60) < 1 / (1 + np.exp(-longer_by / 20 - 0.4))).astype(float)
    terms = np.stack([np.ones(60), length_terms(longer_by)], axis=1)
    other = LogisticRegression(C=1 / PENALTY, fit_intercept=False, tol=1e-10, max_iter=1000).fit(terms, wins)
    expected = 1 / (1 + np.exp(-other.coef_[0, 0]))
    assert length_controlled(wins, length_terms(longer_by), np.ones(60)) == pytest.approx(expected, abs=1e-6)


def test_a_policy_that_always_wins_has_a_finite_rate_and_an_interval() -> None:
    """Of 20 prompts, all won: by Clopper and Pearson at least 0.025 ** (1 / 20)."""
    rates = win_rates(*rewards(*[1.0] * 20), longer_by=np.arange(20.0))
    assert rates.win_rate_interval == [pytest.approx(0.8316, abs=1e-4), 1.0]
    assert 0.95 < rates.length_controlled < 1


def test_the_intervals_hold_the_rates_and_shrink_with_the_prompts() -> None:
    few, many = (
        win_rates(*rewards(*np.tile([1.0, 1.0, -1.0], count)), longer_by=np.tile([4.0, -4.0, 1.0], count))
        for count in (6, 60)
    )
    for rates in (few, many):
        assert rates.win_rate_interval
        assert rates.length_controlled_interval
        assert rates.win_rate_interval[0] < rates.win_rate < rates.win_rate_interval[1]
        assert rates.length_controlled_interval[0] < rates.length_controlled < rates.length_controlled_interval[1]
    width = [
        rates.win_rate_interval[1] - rates.win_rate_interval[0] for rates in (few, many) if rates.win_rate_interval
    ]
    assert width[1] < width[0] / 2


def test_a_reward_that_is_no_number_wins_nothing() -> None:
    assert win_rates(*rewards(np.nan, 1.0), longer_by=np.zeros(2)).win_rate == 0.5
