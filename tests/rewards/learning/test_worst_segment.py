from __future__ import annotations

import math

import numpy as np
import pytest

from rewards.learning.segment_measures import SegmentCase, cases_of, worst_segment


def case(
    labels: list[float], predicted: list[float], prompt: str = "p", *, lengths: list[int] | None = None
) -> SegmentCase:
    return SegmentCase(prompt, np.array(labels), np.array(predicted), np.array(lengths or [1] * len(labels)))


def test_the_share_of_responses_whose_worst_segment_is_found_by_hand() -> None:
    found, missed = case([4, 0, 3], [3, 1, 2], "a"), case([1, 4], [2, 1], "b")
    measured = worst_segment([found, missed])
    assert (measured["responses"], measured["accuracy"]) == (2, 0.5)
    assert measured["chance"] == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert measured["above_chance"] == pytest.approx(0.5 - 5 / 12)


def test_any_of_several_worst_segments_will_do() -> None:
    measured = worst_segment([case([0, 4, 0], [3, 2, 1])])
    assert (measured["accuracy"], measured["chance"]) == (1.0, pytest.approx(2 / 3))


def test_a_model_that_says_the_same_of_all_is_at_chance() -> None:
    measured = worst_segment([case([0, 4, 4, 4], [2, 2, 2, 2])])
    assert (measured["accuracy"], measured["above_chance"]) == (0.25, 0.0)


def test_the_best_fixed_position_and_the_last_stand_beside_it() -> None:
    cases = [case([4, 0, 4], [0, 1, 2]), case([4, 4, 0, 4, 4], [0, 1, 2, 3, 4]), case([4, 0], [0, 1])]
    measured = worst_segment(cases)
    # Half of the way is the second of three, the third of five, and of two, rounded up, the second.
    assert measured["position"] == {"share": 0.5, "accuracy": 1.0}
    assert measured["last"] == pytest.approx(1 / 3)
    assert measured["above_position"] == -1.0


def test_always_the_longest_stands_beside_it() -> None:
    cases = [case([4, 0, 4], [1, 0, 2], lengths=[10, 90, 10]), case([0, 4], [0, 1], lengths=[10, 50])]
    measured = worst_segment(cases)
    assert (measured["accuracy"], measured["longest"], measured["above_longest"]) == (1.0, 0.5, 0.5)


def test_two_longest_segments_count_half_each() -> None:
    assert worst_segment([case([0, 4, 4], [0, 1, 2], lengths=[50, 50, 10])])["longest"] == 0.5


def test_intervals_are_over_prompts() -> None:
    cases = [case([0, 4], [0, 1] if number % 4 else [1, 0], f"p{number}") for number in range(80)]
    measured = worst_segment(cases)
    low, high = measured["intervals"]["accuracy"]
    assert 0.6 < low < measured["accuracy"] == 0.75 < high < 0.9
    assert set(measured["intervals"]) == {"accuracy", "above_chance", "above_position", "above_longest"}
    same_prompt = worst_segment([case([0, 4], [0, 1]) for _ in range(80)])
    assert same_prompt["intervals"] == {}  # one prompt says nothing about others


def test_only_responses_whose_segments_differ_are_counted() -> None:
    labels = np.array([1, 1, 0, 4, 2, math.nan, 3, 0])
    predicted = np.array([1, 2, 0, 1, 1, 1, 1, math.nan])
    cases = cases_of(labels, predicted, np.array([0, 2, 4, 6, 8]), ["a", "b", "c", "d"], lengths=np.ones(8))
    assert [case.prompt for case in cases] == ["b"]


def test_without_such_responses_nothing_is_claimed() -> None:
    assert worst_segment([]) == {
        "responses": 0, "accuracy": None, "chance": None, "position": None, "last": None, "longest": None,
        "intervals": {},
    }  # fmt: skip
