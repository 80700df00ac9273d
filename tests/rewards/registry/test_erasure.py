"""Texts that were redacted or deleted leave the disk with the models that learnt from them."""

import shutil
from unittest.mock import Mock

import pytest
from django.test import TestCase

from annotator.models import Task
from rewards import snapshots
from rewards.models import OwnerlessFolder, RewardModel, RunState, Snapshot, TrainingRun
from rewards.promotion import promotion
from rewards.registry import erasure
from tests.annotator.models.test_constraints import make_model
from tests.builders import NOW
from tests.refusals import refusal
from tests.rewards.labelled import labelled_project


@pytest.fixture
def model(db: None) -> RewardModel:
    """A model that learnt from a snapshot of which a task has been redacted since; both have files."""
    project = labelled_project()
    taken = snapshots.take(project, now=NOW)
    made = make_model(project, 1, is_champion=True)
    TrainingRun.objects.filter(pk=made.run_id).update(snapshot=taken)
    made.run.directory().mkdir(parents=True)
    Task.objects.filter(pk=project.tasks.all()[0].pk).update(redacted_at=NOW)
    return RewardModel.objects.get(pk=made.pk)


def snapshot_of(model: RewardModel) -> Snapshot:
    assert model.run.snapshot is not None
    return model.run.snapshot


def erased(snapshot: Snapshot) -> Snapshot:
    with TestCase.captureOnCommitCallbacks(execute=True):
        return erasure.erase(snapshot, now=NOW)


def test_the_champion_is_not_erased_without_a_replacement(model: RewardModel) -> None:
    with refusal("still_needed", match="Version 1, the champion"):
        erased(snapshot_of(model))
    promotion.promote(make_model(model.project, 2), now=NOW)
    assert erased(snapshot_of(model)).erased_at == NOW


def test_files_go_and_rows_stay(model: RewardModel) -> None:
    promotion.promote(make_model(model.project, 2), now=NOW)
    folders = [snapshot_of(model).directory(), model.run.directory()]
    assert all(folder.exists() for folder in folders)
    erased(snapshot_of(model))
    assert not any(folder.exists() for folder in folders)
    assert RewardModel.objects.get(pk=model.pk).is_erased()


def test_an_erased_model_is_not_promoted(model: RewardModel) -> None:
    promotion.promote(make_model(model.project, 2), now=NOW)
    erased(snapshot_of(model))
    with refusal("files_erased"):
        promotion.promote(model, now=NOW)


def test_what_holds_nothing_to_forget_stays(db: None) -> None:
    with refusal("nothing_to_erase"):
        erased(snapshots.take(labelled_project(), now=NOW))


def test_a_snapshot_is_not_taken_from_under_a_run(model: RewardModel) -> None:
    promotion.promote(make_model(model.project, 2), now=NOW)
    taken = snapshot_of(model)
    run = TrainingRun.objects.create(project=model.project, reason="a test", snapshot=taken, state=RunState.TRAINING)
    with refusal("still_needed", match=f"Run {run.pk}"):
        erased(taken)


def test_a_removal_that_was_cut_short_is_finished_by_the_sweep(
    model: RewardModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    promotion.promote(make_model(model.project, 2), now=NOW)
    with monkeypatch.context() as cut_short:
        cut_short.setattr(shutil, "rmtree", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            erasure.erase(snapshot_of(model), now=NOW)
    assert RewardModel.objects.get(pk=model.pk).is_erased(), "from the first step on nobody uses it"
    assert set(erasure.sweep(now=NOW)) == {snapshot_of(model).directory(), model.run.directory()}
    assert Snapshot.objects.get(pk=snapshot_of(model).pk).erased_at == NOW
    assert erasure.sweep(now=NOW) == []


def test_files_of_a_deleted_project_are_swept(model: RewardModel) -> None:
    folders = {snapshot_of(model).directory(), model.run.directory()}
    model.project.delete()
    assert set(erasure.sweep(now=NOW)) == folders
    assert not any(folder.exists() for folder in folders)
    assert not OwnerlessFolder.objects.exists()
