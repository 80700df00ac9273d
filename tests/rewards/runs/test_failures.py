"""Whatever a run cannot succeed with becomes one clear sentence on its row."""

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from annotator.models import Project
from rewards import snapshots, tasks
from rewards.models import RewardModel, RunState, Snapshot, TrainingRun
from rewards.registry import erasure
from rewards.runs import runs
from rewards.trainer import trainer_process
from tests.annotator.models.test_constraints import make_model
from tests.builders import NOW, imported, label_row, make_project
from tests.rewards.labelled import labelled_project

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.xdist_group("scoring"),
    pytest.mark.usefixtures("workers"),
]
CONFIG = {"epochs": 0, "threads": 1, "batch_tokens": 512}


def error_of(project: Project, *, snapshot: Snapshot | None = None, **config: Any) -> str:
    """What stands on the row of a run that the train worker has taken on."""
    run = runs.request(project, reason="a test", config={**CONFIG, **config})
    TrainingRun.objects.filter(pk=run.pk).update(snapshot=snapshot)
    tasks.train(run.pk)
    run.refresh_from_db()
    assert (run.state, RewardModel.objects.filter(run=run).exists()) == (RunState.FAILED, False)
    assert run.finished_at is not None
    assert "\n" not in run.error
    return run.error


def changed(taken: Snapshot, old: str, new: str) -> Snapshot:
    """The snapshot with other training rows, and with hashes that know of it."""
    rows = taken.directory() / "train.jsonl"
    assert old in rows.read_text()
    rows.write_text(rows.read_text().replace(old, new, 1))
    taken.manifest["files"]["train.jsonl"] = hashlib.sha256(rows.read_bytes()).hexdigest()
    (taken.directory() / "manifest.json").write_text(json.dumps(taken.manifest))
    return taken


def test_a_label_that_is_no_number() -> None:
    project = labelled_project()
    taken = changed(snapshots.take(project, now=NOW), '"coherence": 3', '"coherence": NaN')
    said = "The trainer refused: train.jsonl, line 1: coherence is NaN, not a number from 0 to 4."
    assert error_of(project, snapshot=taken) == said


def test_a_project_with_too_few_labels() -> None:
    project = make_project()
    imported(project, label_row("Question?", "Answer."))
    assert "both must be there. Label more tasks" in error_of(project)


def test_labels_that_are_all_the_same() -> None:
    project = make_project(validation_share=0.3)
    imported(project, *(label_row(f"Question {number}?", f"Answer {number}.") for number in range(20)))
    said = "The trainer refused: every train response has the same labels: there is nothing to tell apart."
    assert error_of(project) == said


def test_a_snapshot_that_was_changed_on_the_disk() -> None:
    project = labelled_project()
    taken = snapshots.take(project, now=NOW)
    with (taken.directory() / "train.jsonl").open("a") as rows:
        rows.write("{}\n")
    assert "train.jsonl is not the file that the manifest describes" in error_of(project, snapshot=taken)


@pytest.mark.parametrize("source", ["/nowhere/at/all", "nobody/has-such-a-model"])
def test_a_backbone_that_is_not_there(source: str, monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> None:
    """It stands in the operator's list, and is named as there."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    settings.REWARD_BACKBONES = {"minilm": "minilm", "large": source}
    error = error_of(labelled_project(), backbone="large")
    assert error.startswith("The trainer refused: ")
    assert "large" in error
    assert "/nowhere" not in error


def test_a_gpu_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    said = "The trainer refused: device is cuda, but torch finds none here."
    assert error_of(labelled_project(), device="cuda") == said


def test_a_champion_whose_checkpoint_is_corrupt() -> None:
    project = labelled_project()
    champion = make_model(project, 1, is_champion=True)
    RewardModel.objects.filter(pk=champion.pk).update(path="models/old", attributes=project.attribute_keys())
    champion.refresh_from_db()
    champion.directory().mkdir(parents=True)
    (champion.directory() / "reward_model.json").write_text("{")
    error = error_of(project)
    assert error.startswith("The champion, version 1, could not be judged. The trainer refused: ")
    assert "is not a reward model's manifest" in error


@pytest.fixture
def small_disk(tmp_path: Path, settings: LazySettings) -> Iterator[Path]:
    """A disk that has room for a snapshot, not for a model."""
    if os.geteuid():
        pytest.skip("only root can mount a small disk")
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", place], check=False).returncode:
        pytest.skip("a small disk cannot be mounted here")
    settings.ARTIFACTS = place
    settings.DISK_RESERVE_MB = 0  # what is there in good time is not asked for here
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def test_a_disk_that_is_full(small_disk: Path) -> None:
    said = "The disk is full. There is no room for the run's files under artifacts."
    assert error_of(labelled_project()) == said
    erasure.sweep(now=NOW)
    assert not list(small_disk.glob("runs/*/.*")), "what was half-written makes room again"


def test_a_disk_so_full_that_not_even_the_snapshot_fits(small_disk: Path) -> None:
    (small_disk / "other").write_bytes(b"\0" * (20 << 20))
    assert error_of(labelled_project(tasks=400)).startswith("The disk is full")


def test_a_trainer_that_cannot_even_write_its_log_is_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer_process, "FULL_BELOW_BYTES", 1 << 60)
    assert trainer_process._last_word(1, "", tmp_path).startswith("The disk is full")
