"""The rule that decides, and the deed."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from annotator.models import Project
from rewards import promotion
from rewards.learning.bootstrap import Gain, paired_bootstrap
from rewards.models import RewardModel
from rewards.promotion import HeldOut, decide
from tests.annotator.test_constraints import make_model
from tests.builders import NOW


def held_out(error: float, *, rmse: float = 1.0, prompts: int = 40) -> HeldOut:
    names = [f"p{number}" for number in range(prompts)]
    errors = {name: error + 0.01 * (number % 5) for number, name in enumerate(names)}
    return HeldOut(errors, dict.fromkeys(names, 1), {"helpfulness": rmse})


MEAN = held_out(2.0)


def test_a_clearly_better_candidate_is_promoted() -> None:
    verdict = decide(held_out(0.5), held_out(1.0), MEAN, seed=0)
    assert verdict.promote
    assert verdict.low > 0
    assert verdict.gain == pytest.approx(0.5)


def test_no_evidence_is_no_promotion() -> None:
    same = held_out(1.0)
    verdict = decide(same, same, MEAN, seed=0)
    assert not verdict.promote
    assert "No evidence" in verdict.reason


def test_a_worse_candidate_stays_out() -> None:
    assert not decide(held_out(1.5), held_out(1.0), MEAN, seed=0).promote


def test_a_guard_metric_holds_back_a_promotion() -> None:
    verdict = decide(held_out(0.5, rmse=1.2), held_out(1.0, rmse=1.0), MEAN, seed=0)
    assert not verdict.promote
    assert "helpfulness" in verdict.reason


def test_no_evidence_says_what_these_prompts_could_have_shown() -> None:
    rough = replace(held_out(1.0), squared_errors={f"p{n}": (n * 7919 % 13) / 7 for n in range(40)})
    verdict = decide(rough, held_out(0.85), MEAN, seed=0)
    assert not verdict.promote
    assert verdict.detectable == pytest.approx(2.802 * (verdict.high - verdict.low) / 3.92, rel=1e-3)
    assert f"These 40 prompts would show a gain of about {verdict.detectable:.3f} or more." in verdict.reason


def gain(of: NDArray[np.float64]) -> Gain:
    """Of a model whose errors are 0, where the champion's are these, by prompt."""
    return paired_bootstrap(of.tolist(), [0.0] * len(of), [1] * len(of), seed=0, resamples=500)


def test_a_gain_as_large_as_the_detectable_one_is_seen_in_four_cases_of_five() -> None:
    noise = np.random.default_rng(5).normal(0, 1, size=(400, 100))  # a hundred prompts whose gains scatter by 1
    detectable = gain(noise[0]).detectable()
    assert 0.7 < np.mean([gain(each + detectable).low > 0 for each in noise]) < 0.9


@pytest.mark.parametrize(
    ("candidate", "said"),
    [
        ({"pairs": 100, "right": 60}, "puts fewer pairs in the right order: 60% instead of 64%"),
        ({"pairs": 100, "right": 64, "constant": frozenset({"verbosity"})}, "every response the same verbosity"),
    ],
)
def test_other_guards_hold_back_a_promotion(candidate: dict[str, Any], said: str) -> None:
    champion = replace(held_out(1.0), pairs=100, right=64)
    verdict = decide(replace(held_out(0.5), **candidate), champion, MEAN, seed=0)
    assert not verdict.promote
    assert said in verdict.reason


@pytest.mark.parametrize(("pairs", "before", "after"), [(100, 64, 61), (10, 6, 5)])
def test_a_pair_of_a_few_does_not_hold_back(pairs: int, before: int, after: int) -> None:
    champion = replace(held_out(1.0), pairs=pairs, right=before)
    assert decide(replace(held_out(0.5), pairs=pairs, right=after), champion, MEAN, seed=0).promote


def test_the_same_scores_for_everything_promote_nothing() -> None:
    dead = replace(held_out(0.5), constant=frozenset({"helpfulness"}))
    assert decide(dead, None, MEAN, seed=0).reason == "It gives every response the same scores."


def test_the_first_model_has_to_beat_the_mean() -> None:
    assert decide(held_out(1.9), None, MEAN, seed=0).promote
    assert not decide(MEAN, None, MEAN, seed=0).promote


def test_a_handful_of_prompts_is_too_few_to_judge_by() -> None:
    verdict = decide(held_out(0.1, prompts=4), None, held_out(2.0, prompts=4), seed=0)
    assert not verdict.promote
    assert "too few" in verdict.reason


def test_the_same_seed_gives_the_same_interval() -> None:
    rough = replace(held_out(0.9), squared_errors={f"p{n}": (n * 7919 % 13) / 7 for n in range(40)})
    assert decide(rough, held_out(1.0), MEAN, seed=3) == decide(rough, held_out(1.0), MEAN, seed=3)


def test_errors_are_summed_by_prompt() -> None:
    rows = [
        {
            "prompt_hash": "p",
            "responses": [{"id": "1", "scores": {"h": 2.0}}, {"id": "2", "scores": {"h": 4.0, "c": 1.0}}],
        }
    ]
    found = promotion.held_out(rows, {"1": {"h": 1.0, "c": 0}, "2": {"h": 4.0, "c": 3.0}})
    assert (found.squared_errors, found.labels) == ({"p": 5.0}, {"p": 3})
    assert found.rmse == {"h": pytest.approx(0.5**0.5), "c": 2.0}


def test_promoting_an_earlier_model_is_the_rollback(project: Project) -> None:
    first, second = make_model(project, 1), make_model(project, 2)
    for model in (first, second, first):
        promotion.promote(model, now=NOW)
    assert RewardModel.objects.get(is_champion=True) == first
