"""When a project is going to be complete, by the days that were."""

from datetime import date, timedelta

from annotator.analysis.pace import FARTHEST, outlook, still_expected

TODAY = date(2026, 1, 31)


def test_an_even_pace_has_an_interval_of_one_day() -> None:
    seen = outlook([10] * 7, remaining=95, today=TODAY)
    assert seen is not None
    assert (seen.per_day, seen.days) == (10, 7)
    assert seen.expected == seen.earliest == seen.latest == TODAY + timedelta(days=10)


def test_days_that_differ_widen_it() -> None:
    # Mean 10, standard deviation 2, four days: 3.18 * 2 / 2 on either side.
    seen = outlook([8, 12, 8, 12], remaining=100, today=TODAY)
    assert seen is not None
    assert seen.expected == TODAY + timedelta(days=10)
    assert seen.earliest == TODAY + timedelta(days=8)
    assert seen.latest == TODAY + timedelta(days=16)


def test_a_pace_that_may_be_zero_has_no_latest_day() -> None:
    seen = outlook([0, 1, 40], remaining=10, today=TODAY)
    assert seen is None  # the day before the first work does not count
    seen = outlook([1, 0, 40], remaining=10, today=TODAY)
    assert seen is not None
    assert seen.earliest is not None
    assert seen.latest is None


def test_days_before_the_first_work_do_not_count_and_rests_do() -> None:
    seen = outlook([0, 0, 6, 0, 6], remaining=8, today=TODAY)
    assert seen is not None
    assert (seen.days, seen.per_day) == (3, 4)


def test_too_few_days_or_no_work_predict_nothing() -> None:
    assert outlook([0] * 28, remaining=5, today=TODAY) is None
    assert outlook([0, 5, 5], remaining=5, today=TODAY) is None
    assert outlook([], remaining=5, today=TODAY) is None


def test_what_is_too_far_away_has_no_day() -> None:
    seen = outlook([1, 1, 1], remaining=FARTHEST.days + 1, today=TODAY)
    assert seen is not None
    assert seen.expected is None


def test_nothing_left_is_done_today() -> None:
    seen = outlook([3, 3, 3], remaining=0, today=TODAY)
    assert seen is not None
    assert seen.expected == TODAY


def test_escalations_to_come_are_expected_work() -> None:
    assert still_expected(wanted=100, untested=50, base=3, most=5, escalated=0.2) == 120
    assert still_expected(wanted=100, untested=50, base=2, most=2, escalated=0.2) == 100
