from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rewards.learning.data import Response, Task, Turn, targets_of
from rewards.learning.evaluate import MOST_VALUES, length_correlation, slices
from rewards.learning.metrics import Measures
from rewards.learning.pairs import pairs_of

WEIGHTS = {"helpfulness": 1.0}


def make_task(number: int, *, turns: int = 1, models: tuple[str, str] = ("", ""), source: str = "") -> Task:
    asked = tuple(Turn(role, "q") for _ in range(turns) for role in ("user", "assistant"))[:-1]
    responses = tuple(
        Response(f"{number}{side}", "x" * (10 * number + side + 1), {"helpfulness": float(side)}, {}, (), models[side])
        for side in (0, 1)
    )
    return Task(str(number), f"h{number}", asked, responses, None, source)


def sliced(tasks: list[Task], predicted: list[float]) -> Measures:
    errors = np.array(predicted)[:, None] - targets_of(tasks, ["helpfulness"])
    return slices(tasks, errors, np.array(predicted), pairs_of(tasks, WEIGHTS))


def test_single_and_multi_turn_are_measured_apart() -> None:
    result = sliced([make_task(1), make_task(2), make_task(3, turns=2)], [0, 1, 0, 1, 1, 0])["turns"]
    assert (result["single"]["n"], result["single"]["rmse"], result["single"]["pairwise"]["accuracy"]) == (4, 0, 1)
    assert (result["multi"]["n"], result["multi"]["rmse"], result["multi"]["pairwise"]["accuracy"]) == (2, 1, 0)


def test_terciles_of_length_hold_all_responses() -> None:
    result = sliced([make_task(number) for number in range(6)], [0.0, 1.0] * 6)["length"]
    assert {name: part["n"] for name, part in result.items()} == {"short": 4, "medium": 4, "long": 4}


def test_a_pair_counts_where_both_of_its_responses_are() -> None:
    result = sliced([make_task(1, models=("a", "b")), make_task(2, models=("a", "a"))], [0, 1, 0, 1])["model"]
    assert (result["a"]["n"], result["a"]["pairwise"]["pairs"]) == (3, 1)
    assert (result["b"]["n"], result["b"]["pairwise"]["pairs"]) == (1, 0)


def test_rows_that_name_no_model_have_no_such_slice() -> None:
    assert set(sliced([make_task(1), make_task(2)], [0, 1, 0, 1])) == {"turns", "length"}


def test_languages_are_measured_apart() -> None:
    tasks = [replace(make_task(1), language="de"), replace(make_task(2), language="en"), make_task(3)]
    result = sliced(tasks, [0, 1, 0, 2, 0, 1])["language"]
    assert {name: part["n"] for name, part in result.items()} == {"de": 2, "en": 2}
    assert (result["de"]["rmse"], result["en"]["pairwise"]["accuracy"]) == (0, 1)
    assert "language" not in sliced([make_task(1), make_task(2)], [0, 1, 0, 1])


def test_only_the_largest_sources_are_shown() -> None:
    tasks = [make_task(number, source=f"s{number}") for number in range(MOST_VALUES + 5)]
    assert len(sliced(tasks, [0.0, 1.0] * len(tasks))["source"]) == MOST_VALUES


def test_each_part_has_an_interval_over_its_prompts() -> None:
    tasks = [make_task(number, source="ab"[number % 2]) for number in range(12)]
    low, high = sliced(tasks, [0.0, 1.0, 0.5, 2.0] * 6)["source"]["b"]["intervals"]["rmse"]
    assert low <= high


def test_a_judge_of_length_alone_correlates_with_it_fully() -> None:
    tasks = [make_task(number) for number in range(5)]
    lengths = np.array([len(r.text) for task in tasks for r in task.responses], dtype=float)
    result = length_correlation(tasks, lengths, targets_of(tasks, ["helpfulness"]), np.ones(1))
    assert result["reward"] == pytest.approx(1)
    assert 0 < result["label"] < 0.5
