"""What annotations show by themselves."""

import math
from typing import Any

import pytest

from annotator.analysis.quality import patterns
from annotator.models import NEITHER_VALID
from tests.annotator.analysis.quality.simulated import work

FLAT, VARIED = [[3, 3], [3, 3]], [[3, 1], [2, 4]]
PAGE = 238 * patterns.CHARACTERS_A_WORD
"""Characters that take a minute to read."""


def done(task: int = 1, annotator: int = 1, scores: list[list[int]] = VARIED, **fields: Any) -> dict[str, Any]:
    return {"task": task, "annotator": annotator, "scores": scores, **fields}


# Hurry -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "hurried"), [(14, True), (16, False), (60, False)])
def test_a_quarter_of_the_reading_time_is_a_hurry(seconds: float, hurried: bool) -> None:
    assert patterns.hurry(work(done(active=seconds)), {1: PAGE}).hurried.tolist() == [hurried]


def test_an_unknown_time_says_nothing() -> None:
    assert patterns.hurry(work(done(active=-1)), {1: PAGE}).timed.tolist() == [False]


def test_short_texts_say_nothing() -> None:
    assert patterns.hurry(work(done(active=0.5)), {1: PAGE // 20}).timed.tolist() == [False]


def test_nobody_has_to_read_for_hours() -> None:
    assert patterns.hurry(work(done(active=151)), {1: 1000 * PAGE}).hurried.tolist() == [False]


def test_the_median_is_each_ones_own() -> None:
    sample = work(
        *(done(task, who, active=time) for task, (who, time) in enumerate([(1, 5), (2, 90), (1, 7), (1, 100)]))
    )
    assert patterns.median_seconds(sample).tolist() == [7, 90]


# Same score everywhere --------------------------------------------------------------------------------------


def test_one_score_throughout_is_compared_with_the_others_of_the_task() -> None:
    result = patterns.sameness(work(done(1, 1, FLAT), done(1, 2), done(2, 1, FLAT), done(2, 2, FLAT), done(3, 1, FLAT)))
    assert result.compared.tolist() == [2, 2]
    assert result.own.tolist() == [2, 1]
    assert result.expected.tolist() == [1, 2]
    assert result.unlike.tolist() == [True, False, False, False, False]


def test_few_scores_are_soon_the_same() -> None:
    assert not patterns.sameness(work(done(1, 1, [[3, 3]]), done(1, 2))).own.any()


def test_an_answer_that_is_missing_is_no_score() -> None:
    one_less = [[3, -1], [3, 3], [3, 3]]
    assert patterns.sameness(work(done(1, 1, one_less), done(1, 2))).own.tolist() == [1, 0]


# Identical ratings in a row ----------------------------------------------------------------------------------


def test_the_longest_run_is_found_in_the_order_of_submission() -> None:
    rows = [done(task, 1, FLAT if task != 3 else VARIED, submitted=10 - task) for task in range(1, 9)]
    result = patterns.repeats(work(*rows, done(1, 2)))
    assert result.longest.tolist() == [5, 1]


def test_a_run_is_of_one_annotator() -> None:
    result = patterns.repeats(work(done(1, 1, FLAT), done(1, 2, FLAT), done(2, 1, FLAT), done(2, 2)))
    assert result.longest.tolist() == [2, 1]


def test_the_same_scores_of_other_responses_are_another_rating() -> None:
    result = patterns.repeats(work(done(1, 1, [[1, 2], [3, 4]]), done(2, 1, [[3, 4], [1, 2]])))
    assert result.longest.tolist() == [1]


def test_imported_annotations_have_no_order() -> None:
    result = patterns.repeats(work(*(done(task, 1, FLAT, imported=True) for task in range(5))))
    assert result.longest.tolist() == [0]


def test_the_chance_of_being_alike_is_the_others() -> None:
    others = [done(task, 2, FLAT) for task in range(3)] + [done(9, 2)]
    result = patterns.repeats(work(*(done(task, 1) for task in range(5)), *others))
    assert result.alike.tolist() == [pytest.approx((9 + 1) / 16), pytest.approx(1.0)]


def test_alone_there_is_no_chance_to_compare_with() -> None:
    (alike,) = patterns.repeats(work(done())).alike
    assert math.isnan(alike)


# A side that is preferred ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("preference", "shown_first", "first"), [(-2, 0, 1), (-2, 1, 0), (1, 1, 1), (1, 0, 0)])
def test_what_counts_is_the_order_shown(preference: int, shown_first: int, first: int) -> None:
    result = patterns.position(work(done(preference=preference, first=shown_first)))
    assert (result.preferences.tolist(), result.first.tolist()) == ([1], [first])


@pytest.mark.parametrize(
    "fields", [{"preference": 0, "first": 0}, {"preference": NEITHER_VALID, "first": 0}, {"preference": 1}]
)
def test_no_side_taken_or_no_order_known_says_nothing(fields: dict[str, Any]) -> None:
    assert patterns.position(work(done(**fields))).preferences.tolist() == [0]
