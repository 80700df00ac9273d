"""Which of the rated models is best: hand-computed cases, other people's software, and simulations."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from rewards.leaderboard.model_ranking import (
    PRIOR,
    Estimate,
    Floats,
    Pairs,
    connected,
    fit,
    length_term,
    mean_of,
    ranking,
    sums_of,
)


def pairs_of(rows: Sequence[tuple[int, int, float]], *, longer: Sequence[float] = ()) -> Pairs:
    """Comparisons (first, second, outcome), each of a prompt of its own."""
    first, second, outcome = (np.array(column) for column in zip(*rows, strict=True))
    lengths = np.array(longer, dtype=float) if longer else np.zeros(len(rows))
    return Pairs(first, second, outcome.astype(float), lengths, np.arange(len(rows)))


def covers(estimate: Estimate, truth: float) -> bool:
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low <= truth <= estimate.high


def test_a_mean_of_single_values_has_the_interval_of_the_textbook() -> None:
    """1, 2, 3, 4: standard error sqrt(5/3)/2 = 0.6455, t(3) = 3.1824."""
    estimate = mean_of(sums_of(np.array([1.0, 2.0, 3.0, 4.0]), np.arange(4)))
    assert (estimate.value, estimate.n, estimate.prompts) == (2.5, 4, 4)
    assert estimate.high == pytest.approx(2.5 + 3.1824 * math.sqrt(5 / 3) / 2, abs=1e-3)


def test_values_of_one_prompt_count_once() -> None:
    """The same four values ten times over are still four prompts."""
    values, prompts = np.array([1.0, 2.0, 3.0, 4.0]), np.arange(4)
    once = mean_of(sums_of(values, prompts))
    often = mean_of(sums_of(np.tile(values, 10), np.tile(prompts, 10)))
    assert often.low == pytest.approx(once.low)
    assert often.high == pytest.approx(once.high)


def test_a_single_prompt_says_nothing_about_chance() -> None:
    estimate = mean_of(sums_of(np.array([1.0, 3.0]), np.zeros(2, dtype=np.int64)))
    assert (estimate.value, estimate.low, estimate.high) == (2.0, None, None)


def test_three_wins_of_four_are_log_three() -> None:
    """The prior draws the difference of 1.0986 towards 0 by next to nothing: at 400 comparisons."""
    pairs = pairs_of([(0, 1, 1.0)] * 300 + [(0, 1, 0.0)] * 100)
    weights = fit(pairs, models=2).weights
    assert weights[0] - weights[1] == pytest.approx(math.log(3), abs=1e-3)
    assert weights.sum() == pytest.approx(0, abs=1e-9)


def test_win_rates_count_ties_as_halves_from_either_side() -> None:
    ranked = ranking(pairs_of([(0, 1, 1.0), (1, 0, 0.5), (1, 0, 0.0), (0, 1, 0.0)]), models=2)
    wins = {standing.model: standing.wins.value for standing in ranked.standings}
    assert wins == {0: pytest.approx(2.5 / 4), 1: pytest.approx(1.5 / 4)}
    assert (ranked.pairs, ranked.ties) == (4, 1)


def test_who_stands_first_changes_nothing() -> None:
    dice = np.random.default_rng(1)
    first, second = dice.integers(0, 2, 200), dice.integers(2, 4, 200)
    outcome, longer = dice.choice([0.0, 0.5, 1.0], 200), dice.normal(0, 300, 200)
    prompts = np.arange(200) // 2
    there = ranking(Pairs(first, second, outcome, longer, prompts), models=4)
    back = ranking(Pairs(second, first, 1 - outcome, -longer, prompts), models=4)
    for one, other in zip(there.standings, back.standings, strict=True):
        assert one.model == other.model
        assert one.wins.low == pytest.approx(other.wins.low)
        assert one.fair.value == pytest.approx(other.fair.value)
        assert one.strength.high == pytest.approx(other.strength.high)
    assert there.length
    assert back.length
    assert there.length.value == pytest.approx(back.length.value)


@pytest.mark.parametrize("by_length", [False, True])
def test_scikit_learn_finds_the_same_weights(by_length: bool) -> None:
    """A tie is a win and a loss of half the weight."""
    from sklearn.linear_model import LogisticRegression

    dice = np.random.default_rng(2)
    count, models = 400, 5
    first = dice.integers(0, models, count)
    second = (first + dice.integers(1, models, count)) % models
    outcome, longer = dice.choice([0.0, 0.5, 1.0], count), dice.normal(50, 200, count)
    design = np.zeros((count, models + by_length))
    design[np.arange(count), first], design[np.arange(count), second] = 1, -1
    if by_length:
        design[:, -1] = length_term(longer)
    theirs = LogisticRegression(C=PRIOR, fit_intercept=False, tol=1e-10, max_iter=10_000)
    theirs.fit(np.vstack([design, design]), [1] * count + [0] * count, np.concatenate([outcome, 1 - outcome]))
    ours = fit(Pairs(first, second, outcome, longer, np.arange(count)), models=models, by_length=by_length)
    assert ours.weights == pytest.approx(theirs.coef_[0], abs=1e-4)


def test_a_model_that_always_wins_stays_finite() -> None:
    ranked = ranking(pairs_of([(0, 1, 1.0)] * 50), models=2)
    best = ranked.standings[0]
    assert (best.model, best.wins.value) == (0, 1.0)
    assert math.isfinite(best.strength.value)
    assert 0.9 < best.fair.value < 1


def test_without_the_length_term_equal_lengths_change_nothing() -> None:
    """A limit case: where all responses have one length, the controlled rate is that of plain Bradley-Terry."""
    pairs = pairs_of([(0, 1, 1.0)] * 30 + [(0, 1, 0.0)] * 10)
    fair = {one.model: one.fair.value for one in ranking(pairs, models=2).standings}
    assert fair[0] == pytest.approx(0.75, abs=0.005)


def test_a_model_that_wins_by_length_alone_loses_its_lead() -> None:
    """People take the longer response; model 0 writes longer ones on most prompts, and is no better otherwise."""
    dice = np.random.default_rng(3)
    longer = dice.normal(150, 300, 3000)
    outcome = (dice.random(3000) < 1 / (1 + np.exp(-2 * length_term(longer)))).astype(float)
    zeros = np.zeros(3000, dtype=np.int64)
    ranked = ranking(Pairs(zeros, zeros + 1, outcome, longer, np.arange(3000)), models=2)
    standing = next(one for one in ranked.standings if one.model == 0)
    assert standing.wins.low is not None
    assert standing.wins.low > 0.55
    assert covers(standing.fair, 0.5)
    assert ranked.length
    assert covers(ranked.length, 2.0)


def test_models_that_never_met_are_in_groups_of_their_own() -> None:
    assert connected(pairs_of([(0, 1, 1.0), (3, 2, 0.0), (1, 4, 0.5)]), models=6) == [0, 0, 2, 2, 0, 5]


def test_nothing_compared_is_an_empty_ranking() -> None:
    empty = np.array([], dtype=np.int64)
    assert ranking(Pairs(empty, empty, empty.astype(float), empty.astype(float), empty), models=3).standings == []


def test_intervals_of_means_cover_in_ninety_of_a_hundred() -> None:
    """Prompts differ, so two responses of one are alike: intervals over single values would cover far less."""
    dice = np.random.default_rng(4)
    covered = 0
    for _ in range(100):
        level = dice.normal(0, 1, 60)
        values = np.repeat(level, 3) + dice.normal(3, 0.3, 180)
        covered += covers(mean_of(sums_of(values, np.repeat(np.arange(60), 3))), 3.0)
    assert 90 <= covered <= 100


def test_intervals_of_win_rates_and_strengths_cover_in_ninety_of_a_hundred() -> None:
    """Four models, three comparisons of each of 80 prompts that share the prompt's taste for model 0, and lengths."""
    dice = np.random.default_rng(5)
    truth, count = np.array([0.6, 0.2, -0.2, -0.6]), 240
    fair = np.array([[1 / (1 + math.exp(b - a)) for b in truth] for a in truth])
    hits = {"wins": 0, "fair": 0, "strength": 0, "length": 0}
    # What the share of wins is on average, by many draws of the same kind.
    many = _simulated(dice, truth, prompts=40_000)
    expected = ranking(many, models=4)
    share = next(one for one in expected.standings if one.model == 0).wins.value
    for _ in range(100):
        ranked = ranking(_simulated(dice, truth, prompts=count // 3), models=4)
        best = next(one for one in ranked.standings if one.model == 0)
        hits["wins"] += covers(best.wins, share)
        hits["fair"] += covers(best.fair, float(fair[0, 1:].mean()))
        plain = next(one for one in expected.standings if one.model == 0).strength.value
        hits["strength"] += covers(best.strength, plain)
        assert ranked.length
        hits["length"] += covers(ranked.length, 1.0)
    assert min(hits.values()) >= 90, hits


def _simulated(dice: np.random.Generator, truth: Floats, *, prompts: int) -> Pairs:
    """Three comparisons of each prompt, with lengths that are favoured by a coefficient of 1."""
    numbers = np.repeat(np.arange(prompts), 3)
    first = dice.integers(0, 4, len(numbers))
    second = (first + dice.integers(1, 4, len(numbers))) % 4
    longer = dice.normal(0, 200, len(numbers)) + 60 * (truth[first] - truth[second])
    logits = truth[first] - truth[second] + length_term(longer)
    outcome = (dice.random(len(numbers)) < 1 / (1 + np.exp(-logits))).astype(float)
    return Pairs(first, second, outcome, longer, numbers)
