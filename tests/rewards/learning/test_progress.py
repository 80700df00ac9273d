"""Long work says how far it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rewards.learning import progress
from rewards.learning.aligning.align import align
from rewards.learning.evaluate import evaluate
from rewards.learning.progress import Count, Progress
from rewards.learning.train import train
from tests.rewards.learning.aligning.builders import make_alignment
from tests.rewards.learning.builders import make_run


def events(path: Path, name: str) -> list[tuple[int, int]]:
    rows = map(json.loads, path.read_text().splitlines())
    return [(row["done"], row["total"]) for row in rows if row["event"] == name]


def test_counted_work_says_each_per_cent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN", 0.0)
    count = Count("encode", 1_000, Progress(tmp_path / "progress.jsonl"))
    for _ in range(1_000):
        count.add()
    assert events(tmp_path / "progress.jsonl", "encode") == [(done, 1_000) for done in range(10, 1_001, 10)]


def test_work_that_is_quick_says_nothing(tmp_path: Path) -> None:
    count = Count("encode", 10, Progress(tmp_path / "progress.jsonl"))
    for _ in range(10):
        count.add()
    assert not (tmp_path / "progress.jsonl").exists()


def test_a_run_says_how_many_texts_it_has_read(
    encoder_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN", 0.0)
    run = make_run(tmp_path, backbone=encoder_directory, tasks=12, epochs=0)
    train(run)
    assert events(run / "progress.jsonl", "encode")[-1] == (24, 24)
    for name in ("features", "predict"):
        done, total = events(run / "progress.jsonl", name)[-1]
        assert 0 < done == total
    (judged := tmp_path / "judged").mkdir()
    config = {"model": str(run / "model"), "data": str(tmp_path / "snapshot" / "validation.jsonl")}
    (judged / "config.json").write_text(json.dumps(config))
    evaluate(judged)
    for name in ("encode", "predict"):
        done, total = events(judged / "progress.jsonl", name)[-1]
        assert 0 < done == total


def test_an_alignment_says_how_much_its_policies_have_read_and_answered(
    decoder_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN", 0.0)
    run = make_alignment(tmp_path / "run", decoder_directory, "dpo", epochs=1, max_steps=1, samples=2)
    align(run)
    for name in ("encode", "reference", "measure", "answer"):
        done, total = events(run / "progress.jsonl", name)[-1]
        assert 0 < done == total
