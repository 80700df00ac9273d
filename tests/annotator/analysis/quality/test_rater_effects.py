"""The model of raters, on simulated ones whose leaning and scatter are known."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from annotator.analysis.quality.rater_effects import LEAST_VARIANCE, rater_effects
from tests.annotator.analysis.quality.simulated import Simulation

LEANING = [-0.6, -0.4, -0.2, 0.0, 0.0, 0.2, 0.4, 0.6]
SCATTER = [0.4, 0.9, 0.5, 1.1, 0.6, 1.3, 0.7, 0.8]


def test_it_recovers_leanings_and_scatter() -> None:
    effects = Simulation(LEANING, SCATTER, responses=2000, exact=True).fitted()
    assert np.abs(effects.leaning - LEANING).max() < 0.1
    assert np.abs(effects.scatter - SCATTER).max() < 0.1
    assert effects.converged


def test_it_ranks_raters_on_the_scale_of_five_levels() -> None:
    effects = Simulation(LEANING, SCATTER).fitted()
    assert spearmanr(effects.leaning, LEANING).statistic > 0.95
    assert spearmanr(effects.scatter, SCATTER).statistic > 0.9


def test_errors_cover_what_was_planted() -> None:
    effects = Simulation(LEANING, SCATTER, exact=True).fitted()
    assert (np.abs(effects.leaning - LEANING) < 3 * effects.error).all()
    assert (effects.error < 0.15).all()


def test_a_lenient_rater_among_equals_leans_upwards() -> None:
    effects = Simulation([0.8, 0, 0, 0, 0, 0], [0.6] * 6).fitted()
    assert effects.leaning[0] > 0.5
    assert np.abs(effects.leaning[1:]).max() < 0.25


def test_whoever_clicks_at_random_is_the_least_reliable() -> None:
    raters = Simulation([0.0] * 8, [0.6] * 8)
    raters.replaced(3, np.random.default_rng(1).integers(0, 5, raters.of(3)))
    effects = raters.fitted()
    assert effects.reliability.argmin() == 3
    assert effects.reliability[3] < 0.4 < np.delete(effects.reliability, 3).min()


def test_whoever_gives_one_score_to_all_is_no_measure_of_the_others() -> None:
    raters = Simulation([0.0] * 8, [0.6] * 8)
    raters.replaced(3, np.full(raters.of(3), 4.0))
    effects = raters.fitted()
    assert effects.leaning[3] > 1
    assert np.flatnonzero(np.isnan(effects.reliability)).tolist() == [3]


def test_a_narrow_use_of_the_scale_is_no_noise() -> None:
    raters = Simulation([0.0] * 8, [0.3] * 8, exact=True)
    mine = raters.raters == 3
    raters.scores[mine] = 2 + (raters.scores[mine] - 2) / 2
    effects = raters.fitted()
    assert effects.stretch[3] / np.delete(effects.stretch, 3).mean() == pytest.approx(0.5, abs=0.1)
    assert effects.scatter[3] < 1.1 * effects.scatter[0]


def test_the_order_of_raters_and_ratings_makes_no_difference() -> None:
    one = Simulation(LEANING, SCATTER, responses=100)
    effects = one.fitted()
    order, names = np.random.default_rng(2).permutation(len(one.items)), np.random.default_rng(3).permutation(8)
    again = rater_effects(one.items[order], names[one.raters[order]], one.scores[order], count=8)
    np.testing.assert_allclose(again.leaning[names], effects.leaning, atol=1e-9)
    np.testing.assert_allclose(again.scatter[names], effects.scatter, atol=1e-9)
    np.testing.assert_allclose(again.surprise, effects.surprise[order], atol=1e-9)


def test_responses_with_one_rater_change_nothing() -> None:
    one = Simulation(LEANING, SCATTER, responses=100)
    effects = one.fitted()
    items, raters = np.append(one.items, range(1000, 1200)), np.append(one.raters, [0] * 200)
    again = rater_effects(items, raters, np.append(one.scores, [4] * 200), count=8)
    np.testing.assert_array_equal(again.leaning, effects.leaning)
    assert np.isnan(again.surprise[-200:]).all()


def test_nothing_shared_is_nothing_known() -> None:
    effects = rater_effects(np.arange(4), np.array([0, 0, 1, 1]), np.array([0.0, 1, 2, 3]), count=2)
    assert np.isnan(effects.leaning).all()
    assert effects.ratings.tolist() == [0, 0]


def test_full_agreement_is_no_division_by_nothing() -> None:
    effects = rater_effects(np.repeat(np.arange(20), 2), np.tile([0, 1], 20), np.full(40, 3.0), count=2)
    np.testing.assert_allclose(effects.leaning, 0, atol=1e-6)
    assert effects.usual_scatter == pytest.approx(LEAST_VARIANCE**0.5)


def test_few_ratings_say_little() -> None:
    """A rater with two wild ratings leans less than one with two hundred."""
    raters = Simulation([0.0] * 6, [0.5] * 6)
    wild = np.array([raters.scores[raters.items == item].mean() + 2 for item in (0, 1)])
    effects = rater_effects(
        np.append(raters.items, [0, 1]), np.append(raters.raters, [6, 6]), np.append(raters.scores, wild), count=7
    )
    assert 0 < effects.leaning[6] < 1
    assert effects.error[6] > 2 * effects.error[0]


def test_a_surprise_is_measured_against_the_others_alone() -> None:
    raters = Simulation([0.0] * 6, [0.5] * 6)
    place = int(np.flatnonzero(raters.scores == 0)[0])
    raters.scores[place] = 4
    effects = raters.fitted()
    others = raters.scores[(raters.items == raters.items[place]) & (np.arange(len(raters.items)) != place)]
    assert effects.distance[place] == pytest.approx(4 - others.mean(), abs=0.6)
    assert effects.surprise[place] == pytest.approx(effects.distance[place], abs=0.3)
