"""Stages, memory, adapters and processes: what must not change the result, and what must."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification

from rewards.learning.config import TrainConfig
from rewards.learning.data import items_of, read_snapshot
from rewards.learning.finetune import OutOfMemory, rate
from rewards.learning.model import DecoderReward
from rewards.learning.model_files import load_checkpoint
from rewards.learning.model_loading import NotForEncoders
from rewards.learning.packing import Packed
from rewards.learning.score import load
from rewards.learning.train import train
from tests.rewards.learning.builders import make_response, make_row, make_run, make_snapshot, read_events, read_json
from tests.servers import ROOT

QUICK: dict[str, Any] = {"epochs": 2, "patience": 3, "learning_rate": 1e-3}


def trained(directory: Path, *, backbone: Path, **config: Any) -> dict[str, Any]:
    run = make_run(directory, backbone=backbone, **{**QUICK, **config})
    train(run)
    metrics: dict[str, Any] = read_json(run / "metrics.json")["training"]
    return metrics


def test_stages_follow_each_other(backbone: Path, tmp_path: Path) -> None:
    run_metrics = trained(tmp_path, backbone=backbone, stages=["regression", "scaled"])
    assert [point["stage"] for point in run_metrics["curve"]] == ["regression"] * 3 + ["scaled"] * 3
    assert set(run_metrics["best_steps"]) == {"regression", "scaled"}
    assert run_metrics["curve"][5]["validation_loss"] < run_metrics["curve"][3]["validation_loss"]


def test_the_second_stage_begins_where_the_first_was_best(decoder_directory: Path, tmp_path: Path) -> None:
    """Its rate is so high that the first stage only gets worse: the second starts from the ridge head."""
    hurt = {"learning_rate": 1.0, "head_learning_rate": 1.0, "max_grad_norm": 1e9, "max_steps": 3}
    both = trained(tmp_path / "both", backbone=decoder_directory, stages=["regression", "scaled"], **hurt)
    alone = trained(tmp_path / "alone", backbone=decoder_directory, stages=["scaled"], **hurt)
    assert both["best_steps"]["regression"] == 0
    assert both["losses"][-3:] == alone["losses"]


def test_the_parts_of_a_step_change_nothing(backbone: Path, tmp_path: Path) -> None:
    whole, parts = (
        trained(tmp_path / str(n), backbone=backbone, stages=["joint"], batch_size=6, micro_tokens=n) for n in (0, 40)
    )
    np.testing.assert_allclose(whole["losses"], parts["losses"], rtol=1e-4)


def test_what_memory_cannot_hold_is_halved(
    decoder_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm = trained(tmp_path / "calm", backbone=decoder_directory)
    small_memory(monkeypatch, tokens=100)
    tight = trained(tmp_path / "tight", backbone=decoder_directory)
    assert [e["micro_tokens"] for e in read_events(tmp_path / "tight/run") if e["event"] == "out_of_memory"]
    np.testing.assert_allclose(tight["losses"], calm["losses"], rtol=1e-4)


def test_memory_for_nothing_at_all_is_said(
    decoder_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_memory(monkeypatch, tokens=1)
    with pytest.raises(OutOfMemory, match="lower max_length"):
        trained(tmp_path, backbone=decoder_directory)


def small_memory(monkeypatch: pytest.MonkeyPatch, *, tokens: int) -> None:
    pooled = DecoderReward.pooled

    def limited(self: DecoderReward, batch: Packed) -> torch.Tensor:
        if torch.is_grad_enabled() and batch.ids.numel() > tokens:
            raise torch.OutOfMemoryError
        return pooled(self, batch)

    monkeypatch.setattr(DecoderReward, "pooled", limited)


def test_activation_checkpointing_changes_nothing(backbone: Path, tmp_path: Path) -> None:
    plain, thrifty = (
        trained(tmp_path / str(on), backbone=backbone, activation_checkpointing=on) for on in (False, True)
    )
    np.testing.assert_allclose(plain["losses"], thrifty["losses"], rtol=1e-5)


def test_a_gain_within_chance_keeps_the_ridge_and_is_told(
    decoder_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rewards.learning.train.beyond_chance", lambda gains: False)
    run = make_run(tmp_path, backbone=decoder_directory, stages=["scaled"], **QUICK)
    train(run)
    metrics = read_json(run / "metrics.json")
    assert metrics["candidate"]["kind"] == "ridge"
    assert metrics["candidate"]["rmse"] == metrics["baseline"]["rmse"]
    assert metrics["training"]["best_step"] > 0
    assert metrics["fine_tuned"]["rmse"] != pytest.approx(metrics["baseline"]["rmse"])
    baseline, kept, tuned = (
        (run / f"{name}.jsonl").read_text(encoding="utf-8")
        for name in ("baseline_predictions", "predictions", "fine_tuned_predictions")
    )
    assert kept == baseline != tuned


def test_adapters_and_the_head_are_trained_and_stored_as_plain_weights(decoder_directory: Path, tmp_path: Path) -> None:
    """Others neither train nor save the head beside adapters."""
    run = make_run(tmp_path, backbone=decoder_directory, lora_rank=4, stages=["scaled"], **QUICK)
    train(run)
    metrics = read_json(run / "metrics.json")
    assert metrics["candidate"]["kind"] == "finetuned"
    baseline, model = (load_checkpoint(run / name, device=torch.device("cpu")) for name in ("baseline", "model"))
    assert not torch.equal(baseline.loaded.network.head.weight, model.loaded.network.head.weight)
    names = {name for name, _ in model.loaded.network.named_parameters()}
    assert names == {name for name, _ in baseline.loaded.network.named_parameters()}
    rows = [json.loads(line) for line in (run / "predictions.jsonl").read_text(encoding="utf-8").splitlines()]
    np.testing.assert_allclose([[*row["scores"].values()] for row in rows], plainly(run, tmp_path), atol=1e-5)


def plainly(run: Path, directory: Path) -> list[list[float]]:
    """The stored model's scores by nothing but transformers."""
    frame = load_checkpoint(run / "model", device=torch.device("cpu")).loaded.frame
    network = AutoModelForSequenceClassification.from_pretrained(run / "model").eval()
    items = items_of(read_snapshot(directory / "snapshot").validation)
    with torch.no_grad():
        return [network(input_ids=torch.tensor([frame.encode(i).ids])).logits[0].tolist() for i in items]


def test_an_encoder_takes_no_adapters(encoder_directory: Path, tmp_path: Path) -> None:
    with pytest.raises(NotForEncoders):
        trained(tmp_path, backbone=encoder_directory, lora_rank=4)


def test_the_rate_warms_up_and_stays_or_falls() -> None:
    constant, cosine = (TrainConfig("s", warmup_steps=2, schedule=name) for name in ("constant", "cosine"))
    assert [rate(constant, step, 6) for step in range(4)] == [0.5, 1, 1, 1]
    assert [rate(cosine, step, 6) for step in (0, 2, 4, 6)] == pytest.approx([0.5, 1, 0.5, 0])


def test_preferences_without_any_rating_are_enough(backbone: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path, backbone=backbone, stages=["bradley_terry"], **QUICK)
    rows = [make_preference(number) for number in range(24)]
    make_snapshot(tmp_path / "snapshot", train=rows[:18], validation=rows[18:])
    train(run)
    metrics = read_json(run / "metrics.json")
    assert metrics["candidate"]["pairwise"]["accuracy"] == 1
    assert metrics["candidate"]["rmse"] is None
    assert metrics["data"]["fit"]["labels"] == 0


def make_preference(number: int) -> dict[str, Any]:
    texts = ["ok " * 8, "no"] if number % 2 else ["no", "ok " * 8]
    responses = [make_response(f"{number}{side}", text, {}) for side, text in zip("ab", texts, strict=True)]
    return {**make_row(number, responses=responses), "preference": -1 if number % 2 else 2}


@pytest.mark.slow
@pytest.mark.parametrize("backbone", ["decoder"], indirect=True)  # what is shared out is the same in an encoder
def test_two_processes_lose_what_one_does(backbone: Path, tmp_path: Path) -> None:
    given = {**QUICK, "stages": ["regression", "scaled"], "micro_tokens": 64, "checkpoint_steps": 2, "device": "cpu"}
    given["precision"] = "float32"
    runs = [make_run(tmp_path / str(count), backbone=backbone, processes=count, **given) for count in (1, 2)]
    train(runs[0])
    command = [sys.executable, "-m", "rewards.learning", "train", str(runs[1])]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    both_metrics = [read_json(run / "metrics.json") for run in runs]
    assert [metrics["training"]["processes"] for metrics in both_metrics] == [1, 2]
    alone, together = (metrics["training"]["losses"] for metrics in both_metrics)
    np.testing.assert_allclose(alone, together, atol=1e-5)
    alone, together = ([point["validation_loss"] for point in metrics["training"]["curve"]] for metrics in both_metrics)
    np.testing.assert_allclose(alone, together, atol=1e-4)
    assert [metrics["candidate"]["kind"] for metrics in both_metrics] == ["finetuned", "finetuned"]
    items = items_of(read_snapshot(tmp_path / "1" / "snapshot").validation)
    alone, together = ([float(score.uncertainty or 0) for score in load(run / "model").score(items)] for run in runs)
    np.testing.assert_allclose(alone, together, atol=1e-4)


@pytest.mark.slow
def test_two_processes_that_are_killed_go_on_where_they_were(decoder_directory: Path, tmp_path: Path) -> None:
    given = {**QUICK, "epochs": 8, "patience": 8, "checkpoint_steps": 1, "processes": 2, "device": "cpu"}
    whole, broken = (make_run(tmp_path / name, backbone=decoder_directory, **given) for name in ("whole", "broken"))
    command = [sys.executable, "-m", "rewards.learning", "train"]
    subprocess.run([*command, str(whole)], cwd=ROOT, check=True, capture_output=True)
    with subprocess.Popen([*command, str(broken)], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        next(line for line in process.stdout if '"step": 5,' in line)
        process.kill()
        # The pipe ends with the last of its processes.
        process.stdout.read()
    subprocess.run([*command, str(broken)], cwd=ROOT, check=True, capture_output=True)
    events = read_events(broken)
    assert next(event["step"] for event in events if event["event"] == "resumed") >= 4
    first, second = (read_json(run / "metrics.json")["training"] for run in (whole, broken))
    np.testing.assert_allclose(second["losses"], first["losses"], atol=1e-6)
    assert second["best_steps"] == first["best_steps"]


@pytest.mark.slow
def test_two_processes_adapt_as_one_does(decoder_directory: Path, tmp_path: Path) -> None:
    given = {**QUICK, "lora_rank": 4, "stages": ["scaled"], "device": "cpu"}
    runs = [make_run(tmp_path / str(n), backbone=decoder_directory, processes=n, **given) for n in (1, 2)]
    train(runs[0])
    command = [sys.executable, "-m", "rewards.learning", "train", str(runs[1])]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    both_metrics = [read_json(run / "metrics.json") for run in runs]
    alone, together = (metrics["training"]["losses"] for metrics in both_metrics)
    np.testing.assert_allclose(alone, together, atol=1e-5)
    # What is stored is the model that was judged: merged, by plain transformers.
    assert both_metrics[1]["candidate"]["kind"] == "finetuned"
    rows = [json.loads(line) for line in (runs[1] / "predictions.jsonl").read_text(encoding="utf-8").splitlines()]
    np.testing.assert_allclose([[*row["scores"].values()] for row in rows], plainly(runs[1], tmp_path / "2"), atol=1e-4)
