"""Fine-tuned networks for each fold of the train prompts: what they have seen, what they cost, and kills."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rewards.learning import cross_training
from rewards.learning.config import TrainConfig
from rewards.learning.cross_training import fits_budget
from rewards.learning.finetune import Diverged, TuningRun, fine_tune
from rewards.learning.train import train
from rewards.reports import model_figures
from tests.rewards.learning.builders import Row, make_rows, make_run, make_snapshot, read_events, read_json

QUICK: dict[str, Any] = {
    "epochs": 2,
    "patience": 3,
    "learning_rate": 1e-3,
    "stages": ["scaled"],
    "precision": "float32",
    "cross_fit_minutes": 30,
}


@pytest.fixture(autouse=True)
def _fine_tuned_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewards.learning.train.beyond_chance", lambda gains: True)


def crossed(run: Path) -> list[Row]:
    lines = (run / "cross_fitted.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_each_train_row_is_predicted_by_a_network_of_another_fold(backbone: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path, backbone=backbone, **QUICK)
    train(run)
    assert read_json(run / "metrics.json")["candidate"]["kind"] == "finetuned"
    rows = crossed(run)
    ids = [response["id"] for task in make_rows(24)[:18] for response in task["responses"]]
    assert sorted(row["id"] for row in rows) == sorted(ids)
    assert all(np.isfinite([*row["scores"].values(), *row["means"].values(), row["reward"]]).all() for row in rows)
    assert [event["name"] for event in read_events(run) if event["event"] == "fold"] == ["0", "1", "2", "3", "4"]
    assert not (run / "folds").exists()


def test_no_label_of_a_prompt_reaches_the_predictions_for_it(decoder_directory: Path, tmp_path: Path) -> None:
    before, after = (make_run(tmp_path / name, backbone=decoder_directory, **QUICK) for name in ("a", "b"))
    rows = make_rows(24)
    for response in rows[0]["responses"]:
        response["scores"] = {"helpfulness": 4.0, "verbosity": 0.0}
    make_snapshot(tmp_path / "b" / "snapshot", train=rows[:18], validation=rows[18:])
    for run in (before, after):
        train(run)
        assert read_json(run / "metrics.json")["candidate"]["kind"] == "finetuned"
    first, second = ({row["id"]: row["scores"] for row in crossed(run)} for run in (before, after))
    assert all(first[f"t0{side}"] == pytest.approx(second[f"t0{side}"], abs=1e-6) for side in "ab")
    assert first != second


def test_without_a_budget_the_held_out_prompts_judge_alone(decoder_directory: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path, backbone=decoder_directory, **{**QUICK, "cross_fit_minutes": 0})
    train(run)
    assert read_json(run / "metrics.json")["candidate"]["kind"] == "finetuned"
    assert not (run / "cross_fitted.jsonl").exists()


@pytest.mark.parametrize(
    ("minutes", "max_hours", "elapsed", "fits"),
    [(4, 0, 9e9, True), (3.9, 0, 0, False), (4, 1, 3000, True), (4, 1, 3200, False), (0, 0, 0, False)],
)
def test_the_budget_is_a_time_and_half_of_what_the_run_has_left(
    minutes: float, max_hours: float, elapsed: float, fits: bool
) -> None:
    config = TrainConfig("snapshot", cross_fit_minutes=minutes, max_hours=max_hours)
    assert fits_budget(config, seconds=60, elapsed=elapsed) == fits


class Stopped(BaseException):
    """What a kill looks like from within."""


def failing_at(number: int, error: BaseException) -> tuple[list[int], Callable[[TuningRun], object]]:
    calls: list[int] = []

    def tuned(run: TuningRun) -> object:
        calls.append(len(calls))
        if len(calls) == number:
            raise error
        return fine_tune(run)

    return calls, tuned


def test_a_restart_goes_on_at_the_fold_that_was_not_done(
    decoder_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, broken = (make_run(tmp_path / name, backbone=decoder_directory, **QUICK) for name in ("whole", "broken"))
    train(whole)
    _, tuned = failing_at(3, Stopped())
    monkeypatch.setattr(cross_training, "fine_tune", tuned)
    with pytest.raises(Stopped):
        train(broken)
    calls, tuned = failing_at(0, Stopped())
    monkeypatch.setattr(cross_training, "fine_tune", tuned)
    train(broken)
    assert len(calls) == 3
    first, second = ({row["id"]: row["scores"] for row in crossed(run)} for run in (whole, broken))
    assert all(first[name] == pytest.approx(second[name], abs=1e-5) for name in first)


def test_a_fold_that_diverges_costs_the_evidence_and_not_the_model(
    decoder_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path, backbone=decoder_directory, **QUICK)
    _, tuned = failing_at(2, Diverged("the loss is no longer a number"))
    monkeypatch.setattr(cross_training, "fine_tune", tuned)
    train(run)
    assert read_json(run / "metrics.json")["candidate"]["kind"] == "finetuned"
    assert not (run / "cross_fitted.jsonl").exists()
    (event,) = [event for event in read_events(run) if event["event"] == "folds_given_up"]
    assert "no longer a number" in event["reason"]


# The learning curve ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stage", "measure"), [("regression", "rmse"), ("scaled", "wrong")])
def test_a_curve_of_fine_tuning_is_drawn_where_it_is_asked_for(
    decoder_directory: Path, tmp_path: Path, stage: str, measure: str
) -> None:
    asked = {**QUICK, "stages": [stage], "max_steps": 2, "fine_tuned_curve": True}
    run = make_run(tmp_path, backbone=decoder_directory, tasks=48, **asked)
    train(run)
    curve = read_json(run / "metrics.json")["fine_tuned_curve"]
    assert (curve["measure"], curve["draws"]) == (measure, 5)
    assert [point["prompts"] for point in curve["points"]] == [7, 14, 29]
    counts = [point["labels"] for point in curve["points"]]
    assert counts == sorted(counts)
    assert curve["outlook"]["labels"] > counts[-1]
    trained = [event["prompts"] for event in read_events(run) if event["event"] == "fold"]
    assert len(trained) == 15
    assert min(trained) < max(trained) / 3
    assert model_figures.summary(read_json(run / "metrics.json"), name="fine_tuned_curve")


def test_without_a_wish_there_is_no_curve_of_fine_tuning(decoder_directory: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path, backbone=decoder_directory, **{**QUICK, "cross_fit_minutes": 0})
    train(run)
    assert read_json(run / "metrics.json")["fine_tuned_curve"] is None


def test_too_few_prompts_give_no_curve_of_fine_tuning(decoder_directory: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path, backbone=decoder_directory, fine_tuned_curve=True, **QUICK)
    train(run)
    assert read_json(run / "metrics.json")["fine_tuned_curve"] is None
