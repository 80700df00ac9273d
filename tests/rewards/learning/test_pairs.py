from __future__ import annotations

import math

import pytest

from rewards.learning.data import Response, Task, Turn
from rewards.learning.pairs import pairwise

WEIGHTS = {"helpfulness": 1.0}


def make_task(
    *scores: float, preference: int | None = None, texts: tuple[str, ...] = ("a", "b", "c"), prompt: str = "h"
) -> Task:
    pairs = zip(scores, texts, strict=False)
    responses = tuple(Response("r", text, {"helpfulness": score}, {}, ()) for score, text in pairs)
    return Task("t", prompt, (Turn("user", "q"),), responses, preference)


def test_a_tie_of_rewards_is_half_right_and_reported() -> None:
    result = pairwise([make_task(1, 2)], [0.5, 0.5], WEIGHTS)
    assert (result["pairs"], result["ties"], result["accuracy"], result["longer_wins"]) == (1, 1, 0.5, 0.5)


def test_every_pair_counts_the_same_whatever_its_task() -> None:
    result = pairwise([make_task(1, 2, 3), make_task(4, 0)], [0.1, 0.2, 0.3, 0.0, 1.0], WEIGHTS)
    # Three of three pairs of the first task, none of the second: 3/4, and not the mean of 1 and 0.
    assert (result["pairs"], result["accuracy"]) == (4, 0.75)


def test_responses_with_equal_labels_are_no_pair() -> None:
    result = pairwise([make_task(2, 2)], [0.0, 1.0], WEIGHTS)
    assert (result["pairs"], result["accuracy"], result["calibration"]["ece"]) == (0, None, None)


def test_a_preference_comes_before_the_labels() -> None:
    result = pairwise([make_task(1, 2, preference=-3)], [1.0, 0.0], WEIGHTS)
    assert result["accuracy"] == 1
    assert result["by_strength"]["preference 3"]["pairs"] == 1


def test_longer_wins_is_counted_on_the_same_pairs() -> None:
    result = pairwise([make_task(1, 2, texts=("long text", "short"))], [0.0, 1.0], WEIGHTS)
    assert (result["accuracy"], result["longer_wins"]) == (1, 0)


def test_pairs_are_told_apart_by_how_far_the_labels_are() -> None:
    tasks = [make_task(1, 1.25), make_task(1, 1.5), make_task(0, 4)]
    result = pairwise(tasks, [0, 1, 1, 0, 0, 1], WEIGHTS)["by_strength"]
    accuracies = {name: measured["accuracy"] for name, measured in result.items()}
    assert accuracies == {"labels 0-0.5": 1, "labels 0.5-1": 0, "labels 1+": 1}


def test_the_strengths_of_the_preference_add_up_to_all_pairs() -> None:
    tasks = [make_task(1, 2, preference=strength) for strength in (1, -2, 3, 3)]
    result = pairwise(tasks, [0.0, 1.0] * 4, WEIGHTS)
    assert sum(measured["pairs"] for measured in result["by_strength"].values()) == result["pairs"] == 4


def test_a_reward_that_is_no_number_is_wrong_and_counted() -> None:
    result = pairwise([make_task(1, 2)], [math.nan, 1.0], WEIGHTS)
    assert (result["accuracy"], result["not_finite"]) == (0, 1)


def test_the_interval_draws_prompts_again_not_pairs() -> None:
    one = [make_task(1, 2) for _ in range(50)]
    many = [make_task(1, 2, prompt=f"p{number}") for number in range(50)]
    rewards = [0.0, 1.0] * 25 + [1.0, 0.0] * 25
    assert pairwise(one, rewards, WEIGHTS)["intervals"] == {}
    low, high = pairwise(many, rewards, WEIGHTS)["intervals"]["accuracy"]
    assert low == pytest.approx(0.36, abs=0.03)
    assert high == pytest.approx(0.64, abs=0.03)
