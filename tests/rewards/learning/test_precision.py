from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from rewards.learning import precision
from rewards.learning.backbones import Source
from rewards.learning.config import AUTO, BFLOAT16, FLOAT32
from rewards.learning.data import Floats, Item, Turn
from rewards.learning.evaluate import evaluate
from rewards.learning.inference import frozen_features
from rewards.learning.model import Loaded
from rewards.learning.model_loading import load_backbone
from rewards.learning.precision import difference, has_bf16, trains_in_half, with_precision
from rewards.learning.score import load
from rewards.learning.train import train
from tests.rewards.learning.builders import make_run, read_json
from tests.servers import ROOT

ITEMS = [Item(str(n), (Turn("user", "question? " * (n % 5)),), "ok no " * (1 + n % 11)) for n in range(40)]


@pytest.fixture
def loaded(encoder_directory: Path) -> Loaded:
    return load_backbone(Source(str(encoder_directory), local=True), attributes=["a"], max_length=64)


def features_of(loaded: Loaded, items: list[Item], *, batch_tokens: int = 512) -> Floats:
    return frozen_features(loaded, [loaded.frame.encode(item) for item in items], batch_tokens=batch_tokens)


def test_auto_follows_the_processor(loaded: Loaded) -> None:
    assert with_precision(loaded, AUTO).half == has_bf16()


def test_float32_is_kept_on_every_processor(loaded: Loaded) -> None:
    assert not with_precision(loaded, FLOAT32).half


def test_auto_keeps_decoders_in_float32(decoder_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "has_bf16", lambda: True)
    decoder = load_backbone(Source(str(decoder_directory), local=True), attributes=["a"], max_length=64)
    assert not with_precision(decoder, AUTO).half


def test_auto_stays_in_float32_where_bf16_gives_other_features(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "has_bf16", lambda: True)
    assert with_precision(loaded, AUTO).half
    torch.manual_seed(0)
    # Attention scores of hundreds have steps of 1 and more in bf16, so each token looks at another one.
    for layer in loaded.network.network.encoder.layer:
        for part in (layer.attention.self.query, layer.attention.self.key, layer.attention.output.dense):
            torch.nn.init.normal_(part.weight, std=5.0)
    assert not with_precision(loaded, AUTO).half


def test_auto_stays_in_float32_where_the_features_are_no_numbers(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision, "has_bf16", lambda: True)
    torch.nn.init.constant_(loaded.network.network.encoder.layer[1].output.dense.bias, torch.nan)
    assert np.isnan(difference(loaded))
    assert not with_precision(loaded, AUTO).half


def test_bf16_features_are_near_those_in_float32_but_rounded(loaded: Loaded) -> None:
    exact, rounded = (features_of(with_precision(loaded, name), ITEMS) for name in (FLOAT32, BFLOAT16))
    assert 1e-6 < np.linalg.norm(rounded - exact) / np.linalg.norm(exact) < 0.02


def test_a_decoder_computes_in_bf16_where_it_is_asked_to(decoder_directory: Path) -> None:
    decoder = load_backbone(Source(str(decoder_directory), local=True), attributes=["a"], max_length=64)
    exact, rounded = (features_of(with_precision(decoder, name), ITEMS) for name in (FLOAT32, BFLOAT16))
    assert 1e-6 < np.linalg.norm(rounded - exact) / np.linalg.norm(exact) < 0.05


@pytest.mark.parametrize("name", [FLOAT32, BFLOAT16])
def test_features_do_not_depend_on_their_neighbours_by_a_single_bit(loaded: Loaded, name: str) -> None:
    model = with_precision(loaded, name)
    alone = np.concatenate([features_of(model, [item]) for item in ITEMS])
    for batch_tokens in (64, 200, 2048):
        assert np.array_equal(features_of(model, ITEMS, batch_tokens=batch_tokens), alone)


def test_weights_stay_in_float32(loaded: Loaded) -> None:
    model = with_precision(loaded, BFLOAT16)
    features_of(model, ITEMS)
    assert {parameter.dtype for parameter in model.network.parameters()} == {torch.float32}


def test_a_gpu_trains_in_bf16_unless_told_otherwise(loaded: Loaded) -> None:
    assert trains_in_half(with_precision(loaded, BFLOAT16), BFLOAT16)
    assert not trains_in_half(with_precision(loaded, FLOAT32), FLOAT32)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, encoder_directory: Path) -> list[Path]:
    """Two equal runs in bf16."""
    runs = [make_run(tmp_path_factory.mktemp("run"), backbone=encoder_directory, precision=BFLOAT16) for _ in "ab"]
    for run in runs:
        train(run)
    return runs


def test_a_run_in_bf16_says_so_and_its_losses_are_not_those_of_float32(
    runs: list[Path], tmp_path: Path, encoder_directory: Path
) -> None:
    exact = make_run(tmp_path, backbone=encoder_directory, precision=FLOAT32)
    train(exact)
    rounded, plain = (read_json(run / "metrics.json")["training"] for run in (runs[0], exact))
    assert rounded["precision"] == {"steps": BFLOAT16, "features_and_scores": BFLOAT16}
    assert plain["precision"] == {"steps": FLOAT32, "features_and_scores": FLOAT32}
    assert rounded["losses"] != plain["losses"]
    assert rounded["losses"] == pytest.approx(plain["losses"], rel=0.05)


def test_equal_runs_in_bf16_store_equal_models(runs: list[Path]) -> None:
    one, other = (read_json(run / "model" / "reward_model.json")["files"] for run in runs)
    assert one == other


def test_a_model_scores_nearly_the_same_in_either_precision(runs: list[Path]) -> None:
    exact, rounded = (
        [scored.reward for scored in load(runs[0] / "model", precision=name).score(ITEMS)]
        for name in (FLOAT32, BFLOAT16)
    )
    assert exact != rounded
    assert rounded == pytest.approx(exact, abs=0.05)


def test_an_evaluation_says_in_which_precision_it_was_made(runs: list[Path], tmp_path: Path) -> None:
    given = {"model": str(runs[0] / "model"), "data": str(runs[0].parent / "snapshot" / "validation.jsonl")}
    for name in (FLOAT32, BFLOAT16):
        (tmp_path / "config.json").write_text(json.dumps({**given, "precision": name}), encoding="utf-8")
        evaluate(tmp_path)
        assert read_json(tmp_path / "metrics.json")["precision"] == name


@pytest.mark.slow
def test_two_processes_in_bf16_lose_nearly_what_one_does(runs: list[Path], tmp_path: Path) -> None:
    config = read_json(runs[0] / "config.json")
    (tmp_path / "config.json").write_text(json.dumps({**config, "processes": 2, "device": "cpu"}), encoding="utf-8")
    command = [sys.executable, "-m", "rewards.learning", "train", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    alone, together = (read_json(run / "metrics.json")["training"] for run in (runs[0], tmp_path))
    assert together["processes"] == 2
    assert together["precision"] == alone["precision"]
    assert together["losses"] == pytest.approx(alone["losses"], rel=0.02)
