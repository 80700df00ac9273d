from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from rewards.learning.data import EmptyPart, Item, Turn, items_of, read_snapshot
from rewards.learning.finetune import Diverged
from rewards.learning.inference import predict
from rewards.learning.model_files import load_checkpoint
from rewards.learning.objectives import Objective
from rewards.learning.progress import Progress
from rewards.learning.score import load
from rewards.learning.train import train
from tests.rewards.learning.builders import make_rows, make_run, make_snapshot, read_events, read_json

QUICK: dict[str, Any] = {"epochs": 3, "patience": 3, "learning_rate": 1e-3, "checkpoint_steps": 2}


def steady(metrics: dict[str, Any]) -> dict[str, Any]:
    """What a repetition must reproduce: all but the clock."""
    clocks = ("seconds", "tokens_per_second")
    return {**metrics, "training": {k: v for k, v in metrics["training"].items() if k not in clocks}}


def test_it_leaves_two_checkpoints_and_what_they_are_worth(backbone: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path, backbone=backbone, **QUICK)
    train(run)
    metrics = read_json(run / "metrics.json")
    assert {"baseline", "candidate", "mean", "data", "training", "seed", "config_hash", "versions"} <= set(metrics)
    assert [event["event"] for event in read_events(run)][0::1][-2:] == ["evaluation", "done"]
    assert len((run / "predictions.jsonl").read_text(encoding="utf-8").splitlines()) == 12
    assert load_checkpoint(run / "baseline", device=torch.device("cpu")).manifest.kind == "ridge"
    assert not (run / "checkpoint").exists()


def test_the_stored_candidate_gives_the_reported_predictions(backbone: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path, backbone=backbone, precision="float32", **QUICK)
    train(run)
    loaded = load_checkpoint(run / "model", device=torch.device("cpu")).loaded
    tasks = read_snapshot(tmp_path / "snapshot").validation
    predicted = predict(loaded, [loaded.frame.encode(i) for i in items_of(tasks)], batch_tokens=256)
    rows = [json.loads(line) for line in (run / "predictions.jsonl").read_text(encoding="utf-8").splitlines()]
    np.testing.assert_allclose([[*row["scores"].values()] for row in rows], predicted, atol=1e-6)


def test_the_stored_candidate_says_how_sure_it_is(backbone: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path, backbone=backbone, epochs=1)
    train(run)
    items = [Item("i", (Turn("user", "question?"),), text) for text in ("ok ok ok", "never seen: 1234567890")]
    results = load(run / "model").score(items)
    assert all(result.uncertainty is not None and result.uncertainty > 0 for result in results)


def test_it_learns_what_the_length_tells(encoder_directory: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path, backbone=encoder_directory, tasks=48, epochs=0)
    train(run)
    metrics = read_json(run / "metrics.json")
    verbosity = metrics["baseline"]["attributes"]["verbosity"]
    assert verbosity["rmse"] < 0.7 * verbosity["mean_rmse"]


def test_the_same_seed_and_snapshot_give_the_same_metrics(backbone: Path, tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, backbone=backbone, **QUICK) for name in "ab"]
    for run in runs:
        train(run)
    first, second = (steady(read_json(run / "metrics.json")) for run in runs)
    assert first["candidate"] == second["candidate"]
    assert first["training"] == second["training"]


@pytest.mark.parametrize("stage", [1, 2])
def test_a_stopped_run_goes_on_to_the_same_bits(
    stage: int, backbone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages = ["regression", "scaled"][:stage]
    runs = [make_run(tmp_path / name, backbone=backbone, stages=stages, **QUICK) for name in ("whole", "stopped")]
    whole, stopped = runs
    train(whole)
    of_one_stage = len(read_json(whole / "metrics.json")["training"]["losses"]) // stage
    stop_after(of_one_stage * (stage - 1) + 3, monkeypatch)
    with pytest.raises(Stopped):
        train(stopped)
    monkeypatch.undo()
    train(stopped)
    assert "resumed" in [event["event"] for event in read_events(stopped)]
    weights = [load_file(run / "model" / "model.safetensors") for run in (whole, stopped)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    first, second = (steady(read_json(run / "metrics.json"))["training"] for run in (whole, stopped))
    assert first == second


def test_a_damaged_state_is_refused_and_the_run_starts_over(
    encoder_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path, backbone=encoder_directory, **QUICK)
    stop_after(3, monkeypatch)
    with pytest.raises(Stopped):
        train(run)
    monkeypatch.undo()
    state = run / "checkpoint" / "state.safetensors"
    state.write_bytes(state.read_bytes()[:-4])
    train(run)
    events = read_events(run)
    assert "not the file that was written" in next(e["reason"] for e in events if e["event"] == "checkpoint_refused")
    assert (run / "metrics.json").is_file()


def test_a_finished_run_is_not_run_again(encoder_directory: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path, backbone=encoder_directory, epochs=0)
    train(run)
    events = read_events(run)
    train(run)
    assert read_events(run) == events


def test_fine_tuning_that_hurts_is_not_kept(backbone: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path, backbone=backbone, learning_rate=5.0, head_learning_rate=5.0, max_grad_norm=1e9)
    train(run)
    metrics = read_json(run / "metrics.json")
    assert metrics["candidate"]["kind"] == "ridge"
    assert metrics["training"]["best_step"] == 0
    assert metrics["fine_tuned"] is None
    assert metrics["candidate"]["rmse"] == pytest.approx(metrics["baseline"]["rmse"])


def test_a_loss_that_is_no_number_ends_the_run(
    encoder_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(_: Objective, scores: Tensor, *others: Any) -> Tensor:
        return scores.sum() * (math.nan if scores.requires_grad else 1.0)

    monkeypatch.setattr(Objective, "loss", lost)
    with pytest.raises(Diverged, match="at step 1"):
        train(make_run(tmp_path, backbone=encoder_directory))


def test_a_snapshot_without_validation_rows_is_refused(encoder_directory: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path, backbone=encoder_directory)
    make_snapshot(tmp_path / "snapshot", train=make_rows(3), validation=[])
    with pytest.raises(EmptyPart, match="validation"):
        train(run)


def test_an_attribute_of_one_value_is_learnt_as_that_value(encoder_directory: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path, backbone=encoder_directory, epochs=1)
    rows = make_rows(12)
    for row in rows:
        for response in row["responses"]:
            response["scores"]["helpfulness"] = 3.0
    make_snapshot(tmp_path / "snapshot", train=rows[:9], validation=rows[9:])
    train(run)
    baseline = read_json(run / "metrics.json")["baseline"]
    assert baseline["attributes"]["helpfulness"]["rmse"] < 1e-3
    assert "helpfulness" in baseline["constant"]


def test_one_train_prompt_is_enough_for_the_mean(encoder_directory: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path, backbone=encoder_directory)
    make_snapshot(tmp_path / "snapshot", train=make_rows(2)[:1], validation=make_rows(2)[1:])
    train(run)
    metrics = read_json(run / "metrics.json")
    assert metrics["candidate"]["kind"] == "ridge"
    assert metrics["candidate"]["rmse"] == pytest.approx(metrics["mean"]["rmse"], abs=1e-4)


def test_an_attribute_with_a_single_label_is_no_obstacle(encoder_directory: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path, backbone=encoder_directory)
    rows = make_rows(12)
    for response in [response for row in rows for response in row["responses"]][1:]:
        del response["scores"]["verbosity"]
    make_snapshot(tmp_path / "snapshot", train=rows[:9], validation=rows[9:])
    train(run)
    assert read_json(run / "metrics.json")["candidate"]["attributes"]["verbosity"]["n"] == 0


def test_a_step_limit_ends_the_run_early(encoder_directory: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path, backbone=encoder_directory, max_steps=1)
    train(run)
    assert read_json(run / "metrics.json")["training"]["steps"] == 1


def test_a_run_does_not_touch_its_snapshot(encoder_directory: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path, backbone=encoder_directory, epochs=0)
    copy = shutil.copytree(tmp_path / "snapshot", tmp_path / "copy")
    train(run)
    for path in copy.iterdir():
        assert path.read_bytes() == (tmp_path / "snapshot" / path.name).read_bytes()


class Stopped(Exception):
    """The plug is pulled."""


def stop_after(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tell, left = Progress.tell, iter(range(steps - 1, -1, -1))

    def tell_or_stop(self: Progress, event: str, **values: Any) -> None:
        tell(self, event, **values)
        if event == "step" and not next(left):
            raise Stopped

    monkeypatch.setattr(Progress, "tell", tell_or_stop)


def test_it_leaves_a_learning_curve_and_what_it_expects(encoder_directory: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path, backbone=encoder_directory, tasks=48, epochs=0)
    train(run)
    curve = read_json(run / "metrics.json")["learning_curve"]
    assert [point["prompts"] for point in curve["points"]][-1] == 32  # of 36 train prompts
    assert curve["outlook"]["labels"] == 72
    rows = [json.loads(line) for line in (run / "expected.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 96
    assert set(rows[0]["scores"]) <= {"helpfulness", "verbosity"}
