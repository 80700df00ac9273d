"""A stored model against labels and against benchmarks, by the same door."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rewards.learning.benchmarks import UnknownFormat
from rewards.learning.data import EmptyPart, LeakedPrompt, Task, read_snapshot, tasks_of
from rewards.learning.evaluate import evaluate, measure
from rewards.learning.model import DECODER
from rewards.learning.model_files import RIDGE, Manifest
from rewards.learning.train import train
from tests.rewards.learning.benchmarks.builders import best_of_four_row, labelled_row, pair_row, styles_row
from tests.rewards.learning.builders import ATTRIBUTES, Row, make_rows, make_run, make_snapshot, read_json, write_jsonl


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, decoder_directory: Path) -> Path:
    run = make_run(tmp_path_factory.mktemp("trained"), backbone=decoder_directory, epochs=1)
    train(run)
    return run


def evaluated(trained: Path, place: Path, data: Path, **config: Any) -> Any:
    place.mkdir()
    given = {"model": str(trained / "model"), "data": str(data), **config}
    (place / "config.json").write_text(json.dumps(given), encoding="utf-8")
    evaluate(place)
    return read_json(place / "metrics.json")


def predictions(place: Path) -> list[Row]:
    return [json.loads(line) for line in (place / "predictions.jsonl").read_text(encoding="utf-8").splitlines()]


def manifest() -> Manifest:
    weights = dict.fromkeys(ATTRIBUTES, 0.5)
    return Manifest(RIDGE, ATTRIBUTES, weights, (2.0, 2.0), DECODER, "none", "", "", 64, "c0ffee", {})


def tasks(count: int = 10) -> list[Task]:
    return list(tasks_of("rows", enumerate(make_rows(count), start=1)))


@pytest.mark.parametrize(
    ("row", "name"),
    [
        (pair_row(), "RewardBench"),
        (best_of_four_row(), "RewardBench 2"),
        (styles_row(), "RM-Bench"),
        (labelled_row(), "JudgeBench"),
        (pair_row("mine"), "preference pairs"),
    ],
)
def test_every_format_comes_in_by_the_same_door(row: Row, name: str, trained: Path, tmp_path: Path) -> None:
    metrics = evaluated(trained, tmp_path / "e", write_jsonl(tmp_path / "rows.jsonl", [row]))
    assert (metrics["data"]["format"], metrics["data"]["rows"], metrics["all"]["n"]) == (name, 1, 1)
    assert 0 <= predictions(tmp_path / "e")[0]["result"] <= 1


def test_unknown_columns_are_refused(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownFormat, match="Known are snapshot"):
        evaluated(trained, tmp_path / "e", write_jsonl(tmp_path / "rows.jsonl", [{"text": "?"}]))


def test_a_score_does_not_depend_on_its_neighbours(trained: Path, tmp_path: Path) -> None:
    data = write_jsonl(tmp_path / "rows.jsonl", make_rows(12))
    # 64 tokens is what one item may have: each alone; and all of them at once.
    for name, tokens in (("alone", 64), ("together", 100_000)):
        evaluated(trained, tmp_path / name, data, batch_tokens=tokens)
    alone, together = ([row["reward"] for row in predictions(tmp_path / name)] for name in ("alone", "together"))
    assert alone == pytest.approx(together, abs=1e-5)


def test_the_same_text_ties_whatever_stands_around_it(trained: Path, tmp_path: Path) -> None:
    same = [pair_row(id=str(n), chosen="Same.", rejected="Same.") for n in range(3)]
    others = [pair_row(id=str(n), chosen="x" * n, rejected="y" * 2 * n) for n in range(1, 9)]
    data = write_jsonl(tmp_path / "rows.jsonl", [*same, *others])
    assert evaluated(trained, tmp_path / "e", data, batch_tokens=64)["all"]["ties"] == 3


def test_tasks_whose_prompt_was_trained_on_are_left_out(trained: Path, tmp_path: Path) -> None:
    rows = make_rows(6)
    rows[0]["conversation"][0]["content"] = f"  {rows[0]['conversation'][0]['content'].upper()} "
    seen, data = write_jsonl(tmp_path / "train.jsonl", rows[:2]), write_jsonl(tmp_path / "rows.jsonl", make_rows(6))
    metrics = evaluated(trained, tmp_path / "e", data, train=str(seen))
    assert (metrics["seen_in_training"], metrics["attributes"]["helpfulness"]["n"]) == (2, 8)


def test_nothing_is_left_where_every_prompt_was_trained_on(trained: Path, tmp_path: Path) -> None:
    data = write_jsonl(tmp_path / "rows.jsonl", make_rows(2))
    with pytest.raises(EmptyPart, match="2 tasks are left out"):
        evaluated(trained, tmp_path / "e", data, train=str(data))


def test_a_snapshot_with_a_prompt_on_both_sides_is_refused(tmp_path: Path) -> None:
    rows = make_rows(4)
    with pytest.raises(LeakedPrompt):
        read_snapshot(make_snapshot(tmp_path / "s", train=rows[:3], validation=rows[2:]))


def test_a_constant_score_is_said_to_be_one() -> None:
    measured = measure(tasks(), np.full((20, 2), 2.0), manifest())
    assert measured["constant"] == list(ATTRIBUTES)
    assert (measured["pairwise"]["accuracy"], measured["pairwise"]["ties"]) == (0.5, measured["pairwise"]["pairs"])


def test_predictions_that_are_no_numbers_are_said_and_hide_nothing() -> None:
    predicted = np.full((20, 2), 2.0)
    predicted[3, 0] = np.nan
    measured = measure(tasks(), predicted, manifest())
    assert (measured["not_finite"], measured["rmse"], measured["attributes"]["helpfulness"]["rmse"]) == (1, None, None)
    assert measured["attributes"]["verbosity"]["rmse"] is not None


def test_the_metrics_are_json_that_a_database_takes() -> None:
    predicted = np.full((20, 2), np.nan)
    json.dumps(measure(tasks(), predicted, manifest()), allow_nan=False)
    json.dumps(measure(tasks(1), predicted[:2] * 0 + 1, manifest()), allow_nan=False)


def test_perfect_predictions_are_measured_as_perfect() -> None:
    rows = tasks(30)
    labels = np.array([[r.scores[name] for name in ATTRIBUTES] for task in rows for r in task.responses])
    measured = measure(rows, labels, manifest())
    assert (measured["rmse"], measured["pairwise"]["accuracy"]) == (0, 1)
    assert measured["attributes"]["verbosity"]["calibration"]["slope"] == pytest.approx(1)


@pytest.mark.slow
def test_part_of_rewardbench_is_reported_as_the_part_it_is(trained: Path, tmp_path: Path) -> None:
    part = {"llmbar-adver-GPTInst": 5, "llmbar-adver-GPTOut": 3, "llmbar-natural": 6}
    rows = [pair_row(id=f"{name} {n}", subset=name) for name, count in part.items() for n in range(count)]
    metrics = evaluated(trained, tmp_path / "e", write_jsonl(tmp_path / "rows.jsonl", rows))
    assert {name: subset["n"] for name, subset in metrics["subsets"].items()} == part
    assert "mt-bench-hard is not there" in metrics["sections"]["Chat Hard"]["reason"]
    assert (metrics["overall"]["accuracy"], metrics["all"]["n"]) == (None, 14)
