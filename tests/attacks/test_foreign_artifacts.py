"""Processes on two machines whose artifacts are not the same: said at once, and nothing is deleted or called erased."""

import shutil
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.core.management import call_command

from annotator.infrastructure.storage import artifacts
from annotator.models import BackgroundFailure
from rewards import snapshots, tasks
from rewards.models import RewardModel, RunState, Snapshot, TrainingRun
from rewards.promotion import promotion
from rewards.registry import erasure
from rewards.runs import training
from tests.annotator.models.test_constraints import make_model
from tests.builders import NOW
from tests.rewards.labelled import labelled_project
from tests.rewards.registry.test_erasure import model, snapshot_of

__all__ = ["model"]


@pytest.fixture
def elsewhere(db: None, settings: LazySettings, tmp_path: Path) -> Path:
    """The folder of another machine, on a database that is marked already."""
    artifacts.mark_new()
    here = settings.ARTIFACTS
    settings.ARTIFACTS = tmp_path / "elsewhere"
    settings.ARTIFACTS.mkdir()
    return Path(here)


def test_what_lies_elsewhere_is_not_called_erased(model: RewardModel, elsewhere: Path) -> None:
    promotion.promote(make_model(model.project, 2), now=NOW)
    with pytest.raises(artifacts.ForeignArtifacts, match="VAR_DIR"):
        erasure.erase(snapshot_of(model), now=NOW)
    assert Snapshot.objects.get(pk=snapshot_of(model).pk).erased_at is None


def test_what_cannot_be_removed_is_not_called_erased(model: RewardModel, monkeypatch: pytest.MonkeyPatch) -> None:
    promotion.promote(make_model(model.project, 2), now=NOW)
    taken = snapshot_of(model)

    def refuse(folder: Path) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as refusing:
        refusing.setattr(shutil, "rmtree", refuse)
        with pytest.raises(erasure.NotRemoved, match=r"snapshots/.* stays \(Permission denied\)"):
            erasure.erase(taken, now=NOW)
        tasks.sweep_files()
    assert Snapshot.objects.get(pk=taken.pk).erased_at is None
    assert BackgroundFailure.objects.get().task == "sweep_erased"
    tasks.sweep_files()
    assert Snapshot.objects.get(pk=taken.pk).erased_at is not None
    assert not BackgroundFailure.objects.exists()


def test_the_sweep_deletes_nothing_of_another_installation(model: RewardModel, elsewhere: Path) -> None:
    model.project.delete()
    with pytest.raises(artifacts.ForeignArtifacts):
        tasks.sweep_files()
    artifacts.adopt()
    assert tasks.sweep_files() == 2


@pytest.mark.parametrize(("attempt", "state"), [(0, RunState.QUEUED), (2, RunState.FAILED)])
def test_a_worker_without_the_champion_refuses_before_it_trains(
    db: None, monkeypatch: pytest.MonkeyPatch, attempt: int, state: RunState
) -> None:
    project = labelled_project()
    make_model(project, 1, is_champion=True)
    monkeypatch.setattr(training, "supervise", lambda *_: pytest.fail("it has begun to train"))
    run = TrainingRun.objects.create(project=project, reason="a test", config={}, attempt=attempt)
    tasks.train(run.pk)
    run.refresh_from_db()
    assert run.state == state, "another worker may see them; if none does, the run has failed"
    assert "has no files of the champion, version 1" in run.error


def test_an_old_folder_under_a_new_database_is_no_match(db: None, settings: LazySettings) -> None:
    settings.ARTIFACTS.mkdir(parents=True)
    artifacts.marker().write_text("5b0dfbc3-7e3c-4ae5-8c07-4ed0f6a4b8a2\n")
    call_command("adopt_artifacts", only_new=True)
    with pytest.raises(artifacts.ForeignArtifacts, match="another installation"):
        snapshots.take(labelled_project(), now=NOW)
    call_command("adopt_artifacts")
    artifacts.require_ours()


def test_a_folder_is_ours_alone(db: None, settings: LazySettings) -> None:
    artifacts.mark_new()
    assert settings.ARTIFACTS.stat().st_mode & 0o777 == 0o700
