from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from rewards.learning.paired_gain import LEVEL, confidence_at, paired_gain, t_quantile


def test_a_candidate_that_is_better_everywhere_gains_for_sure() -> None:
    gain = paired_gain([2.0, 4.0, 6.0], [1.0, 2.0, 3.0], [1, 2, 3])
    assert gain.mean == pytest.approx(1.0)
    assert gain.low == pytest.approx(1.0)
    assert gain.prompts == 3


def test_noise_is_no_evidence() -> None:
    gain = paired_gain([1.0, 3.0] * 50, [3.0, 1.0] * 50, [2] * 100)
    assert gain.low < 0 < gain.high


def test_with_one_label_a_prompt_it_is_the_t_test() -> None:
    rival, candidate = np.random.default_rng(1).normal(size=(2, 12))
    interval = stats.ttest_rel(rival, candidate).confidence_interval(0.9)
    gain = paired_gain(rival.tolist(), candidate.tolist(), [1] * 12, confidence=0.9)
    assert (gain.low, gain.high) == pytest.approx((interval.low, interval.high), rel=1e-5)


@pytest.mark.parametrize("freedom", [1, 2, 4, 19, 500])
@pytest.mark.parametrize("probability", [0.5, 0.975, 0.9999])
def test_the_quantiles_are_scipys(probability: float, freedom: int) -> None:
    assert t_quantile(probability, freedom) == pytest.approx(stats.t.ppf(probability, freedom), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("prompts", [5, 10, 40])
def test_an_equal_candidate_seems_better_in_no_more_than_one_of_forty(prompts: int) -> None:
    dice = np.random.default_rng(prompts)
    hard = dice.lognormal(0, 0.8, size=(2000, prompts))
    errors = [(hard * dice.chisquare(2, size=hard.shape)).tolist() for _ in range(2)]
    wins = [paired_gain(one, other, [2] * prompts).low > 0 for one, other in zip(*errors, strict=True)]
    assert np.mean(wins) < 0.035


def test_looks_share_the_chance_of_an_error() -> None:
    chances = [(1 - confidence_at(look)) / 2 for look in range(1, 1000)]
    assert confidence_at(1) == pytest.approx(0.97)
    assert sum(chances) < LEVEL
    assert chances == sorted(chances, reverse=True)


def test_one_prompt_is_no_evidence() -> None:
    assert paired_gain([5.0], [0.0], [1]).low < 0


def test_it_refuses_to_judge_without_prompts() -> None:
    with pytest.raises(ValueError, match="one prompt or more"):
        paired_gain([], [], [])


def test_it_needs_no_torch() -> None:
    code = "import sys, rewards.learning.paired_gain, rewards.learning.config; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
