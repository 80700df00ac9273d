"""The bootstrap: over tasks, as it is written in books, and over buckets of them."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotator.statistics import measures
from annotator.statistics.pair_counts import Kind, tallied, tallied_by_task
from tests.annotator.analysis.agreement.samples import COLUMNS, HELPFULNESS, Samples, by_definition, records_of


def noisy(tasks: int, *, responses: int = 1) -> list[list[int]]:
    """Three raters who see a task's level with noise."""
    dice = random.Random(7)
    levels = [level for level in dice.choices(range(5), k=tasks) for _ in range(responses)]
    return [[min(4, max(0, level + dice.choice((-1, 0, 0, 1)))) for _ in range(3)] for level in levels]


def by_tasks(samples: Samples, *, responses: int = 1) -> list[float]:
    groups = tallied_by_task(records_of(samples, responses=responses), COLUMNS)
    return [float(end) for end in measures.intervals(groups, COLUMNS)[HELPFULNESS]]


def test_it_is_the_bootstrap_over_tasks() -> None:
    tasks = [noisy(40, responses=2)[place : place + 2] for place in range(0, 80, 2)]
    dice = random.Random(1)
    drawn = [by_definition([sample for task in dice.choices(tasks, k=40) for sample in task]) for _ in range(1000)]
    low, high = by_tasks([sample for task in tasks for sample in task], responses=2)
    expected = np.quantile(drawn, (0.025, 0.975))
    width = expected[1] - expected[0]
    assert (low, high) == pytest.approx(tuple(expected), abs=0.15 * width)


def test_buckets_tell_what_tasks_tell() -> None:
    records = records_of(noisy(4000))
    exact = measures.intervals(tallied_by_task(records, COLUMNS), COLUMNS)[HELPFULNESS]
    grouped = measures.intervals(tallied(records, COLUMNS)[Kind.BUCKET], COLUMNS)[HELPFULNESS]
    width = exact[1] - exact[0]
    assert grouped == pytest.approx(exact, abs=0.15 * width)


def test_responses_of_one_task_are_drawn_together() -> None:
    """Two equal responses a task are no news: the interval is as wide as with one."""
    single = noisy(60)
    double = [sample for sample in single for _ in range(2)]
    assert by_tasks(double, responses=2) == pytest.approx(by_tasks(single))


def test_the_same_ratings_have_the_same_interval() -> None:
    assert by_tasks(noisy(20)) == by_tasks(noisy(20))


@pytest.mark.parametrize(
    "samples",
    [[[0, 4]], [[0, 4], [1, 1], [2, 3], [3, 3]], [[2, 2]] * 40, [[level % 5] * 2 for level in range(40)]],
    ids=["one task", "four tasks", "one level", "nobody differs"],
)
def test_there_is_none_of_few_tasks_or_where_all_draws_are_alike(samples: Samples) -> None:
    assert np.isnan(by_tasks(samples)).all()


@given(st.lists(st.lists(st.integers(0, 4), min_size=2, max_size=3), min_size=1, max_size=9))
@settings(max_examples=40, deadline=None)
def test_no_interval_is_without_a_width(samples: Samples) -> None:
    low, high = by_tasks(samples)
    assert np.isnan([low, high]).all() or low < high
