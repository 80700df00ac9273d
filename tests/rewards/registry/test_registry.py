"""A model's page says where it comes from, and whether its files are what was written."""

import hashlib
import json

import pytest
from django.core.management import CommandError, call_command

from rewards import snapshots
from rewards.models import RewardModel, TrainingRun
from rewards.registry import registry
from tests.annotator.models.test_constraints import make_model
from tests.builders import NOW
from tests.rewards.labelled import labelled_project


@pytest.fixture
def model(db: None) -> RewardModel:
    """A model whose only file holds a word."""
    project = labelled_project()
    made = make_model(project, 2)
    made.parent = make_model(project, 1)
    made.path = f"runs/{made.run_id}/model"
    made.manifest = {"files": {"weights": hashlib.sha256(b"heavy").hexdigest()}, "template_hash": "7e"}
    made.save()
    taken = snapshots.take(project, now=NOW)
    TrainingRun.objects.filter(pk=made.run_id).update(snapshot=taken, config_hash="c0", code_version="0.1+ab", seed=4)
    made.directory().mkdir(parents=True)
    (made.directory() / "weights").write_bytes(b"heavy")
    (made.directory() / "reward_model.json").write_text(json.dumps(made.manifest))
    return RewardModel.objects.get(pk=made.pk)


def test_lineage_names_what_a_model_is_made_of(model: RewardModel) -> None:
    lineage = registry.lineage(model)
    assert model.run.snapshot is not None
    assert lineage["snapshot"] == model.run.snapshot.content_hash
    assert (lineage["config_hash"], lineage["code_version"], lineage["template_hash"]) == ("c0", "0.1+ab", "7e")
    assert (lineage["seed"], lineage["parent"], list(lineage["files"])) == (4, 1, ["weights"])


def test_a_model_of_an_earlier_release_says_how_it_reads_conversations(model: RewardModel) -> None:
    assert registry.rendering(model).startswith("version 1, of an earlier release")
    model.manifest["template"] = "{{ strftime_now('%Y') }}"
    assert "Scores from before the update hold the date of their day" in registry.rendering(model)
    model.manifest["rendering"] = 2
    assert registry.lineage(model)["rendering"] == "version 2"


def test_files_that_were_not_touched_are_intact(model: RewardModel) -> None:
    assert registry.verify(model) == []
    call_command("verify_model", str(model.pk))


def test_a_changed_and_a_missing_file_are_found(model: RewardModel) -> None:
    (model.directory() / "weights").write_bytes(b"light")
    assert model.run.snapshot is not None
    (model.run.snapshot.directory() / "train.jsonl").unlink()
    with pytest.raises(CommandError, match=r"weights is not the file that was written") as refused:
        call_command("verify_model", str(model.pk))
    assert "train.jsonl is missing" in str(refused.value)


def test_a_changed_manifest_is_found(model: RewardModel) -> None:
    (model.directory() / "reward_model.json").write_text("{}")
    assert registry.verify(model) == [f"{model.path}/reward_model.json is not what was registered."]
