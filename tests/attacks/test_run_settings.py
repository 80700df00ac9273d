"""A manager's settings for the trainer: no path, no pickle, no number without a bound, no run without an end."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from rest_framework.test import APIClient

from annotator.models import Project
from rewards import tasks
from rewards.learning.backbones import PickledBackbone, find_backbone
from rewards.learning.config import BadConfig, EvaluateConfig, ScoreConfig, TrainConfig, parse_config
from rewards.models import RewardModel, RunState, TrainingRun
from rewards.registry import registry
from rewards.runs import runs
from rewards.runs.run_settings import UnusableConfig, check_config
from rewards.trainer import trainer_process
from tests.builders import imported, label_row
from tests.conftest import Cast
from tests.each import each
from tests.rewards.labelled import labelled_project

pytestmark = pytest.mark.usefixtures("workers")

As = Callable[[Any], APIClient]
PLACES = ["/srv/models/secret", "/etc", "../models", ".", "nobody/some-model", "bert-base-uncased"]
BEYOND: dict[str, Any] = {
    "seed": 2**31,
    "epochs": 2**31 - 1,
    "max_steps": 2**31 - 1,
    "batch_tokens": 2**31 - 1,
    "batch_size": 2**31 - 1,
    "micro_tokens": 2**31 - 1,
    "max_length": 2**31 - 1,
    "layers": 100_000,
    "learning_rate": 1e9,
    "head_learning_rate": 1e300,
    "weight_decay": 1e9,
    "warmup_steps": 2**31 - 1,
    "max_grad_norm": 1e30,
    "lora_rank": 1_000_000,
    "patience": 2**31 - 1,
    "checkpoint_steps": 2**31 - 1,
    "threads": 100_000,
    "processes": 100_000,
    "max_hours": 100_000,
    "stages": ["regression"] * 100_000,
    "alphas": [1.0] * 100_000,
    "attribute_weights": {f"attribute-{number}": 1.0 for number in range(1_000)},
}


@pytest.fixture
def carol(cast: Cast, project: Project, as_user: As) -> APIClient:
    """A manager of a project with something to learn from."""
    imported(project, *(label_row(f"Question {number}?", f"Answer {number}.") for number in range(3)))
    return as_user(cast.carol)


def through_rest(carol: APIClient, config: dict[str, Any]) -> list[str]:
    """What each call that takes settings answers with 400."""
    answers = [
        carol.post("/api/v1/projects/talk/training-runs/", {"config": config}),
        carol.patch("/api/v1/projects/talk/", {"training_config": config}),
        carol.post("/api/v1/projects/", {"slug": "new", "name": "New", "training_config": config}),
    ]
    assert {answer.status_code for answer in answers} <= {400, 403}, "403: who may make projects is another rule"
    return [answer.json()["detail"] for answer in answers if answer.status_code == 400]


@pytest.mark.parametrize("name", BEYOND)
def test_no_number_is_without_a_bound(carol: APIClient, name: str) -> None:
    refused = through_rest(carol, {name: BEYOND[name]})
    assert len(refused) >= 2
    assert all(name in said for said in refused)
    assert not TrainingRun.objects.exists()


@pytest.mark.parametrize("name", BEYOND)
def test_a_refusal_knows_which_setting_is_at_fault(name: str) -> None:
    with pytest.raises(UnusableConfig) as refused:
        check_config({name: BEYOND[name]})
    assert refused.value.setting == name


def test_a_refusal_names_the_field_its_value_and_its_bound(carol: APIClient) -> None:
    for said in each(through_rest(carol, {"epochs": 2**31 - 1})):
        assert "epochs must be at most 10,000, not 2,147,483,647" in said


@pytest.mark.parametrize("config", [EvaluateConfig, ScoreConfig])
def test_what_evaluates_and_scores_is_bounded_too(config: Any) -> None:
    given = {"model": "m", "data": "d"} if config is EvaluateConfig else {"model": "m"}
    with pytest.raises(BadConfig, match="threads must be at most"):
        parse_config(config, {**given, "threads": 100_000})


def test_every_number_of_a_run_has_a_bound() -> None:
    unbounded = {"dev_share"}  # between 0 and 1
    numbers = {name for name, value in vars(TrainConfig("s")).items() if type(value) in (int, float)}
    for name in numbers - unbounded:
        with pytest.raises(BadConfig, match=f"{name} must be at most"):
            parse_config(TrainConfig, {"snapshot": "s", name: 2**53})


def test_weights_name_attributes_that_there_are(carol: APIClient) -> None:
    for said in each(through_rest(carol, {"attribute_weights": {"x": 1.0, "__class__": 1.0}})):
        assert "attribute_weights names __class__, x, which the rubric does not have." in said
    assert not TrainingRun.objects.exists()


# Backbones --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", PLACES)
def test_a_backbone_is_a_name_of_the_operators_list(carol: APIClient, settings: LazySettings, place: str) -> None:
    settings.REWARD_BACKBONES = {"minilm": "minilm", "large": "/srv/models/secret"}
    refused = through_rest(carol, {"backbone": place})
    assert len(refused) >= 2
    assert all("backbone must be one of these names: minilm, large." in said for said in refused)
    assert all("/srv/models" not in said for said in refused)


@pytest.mark.parametrize("place", ["snapshot", "backbone_source"])
def test_nor_are_the_places_of_files_a_managers_to_set(carol: APIClient, place: str) -> None:
    assert len(through_rest(carol, {place: "/etc"})) >= 2


@pytest.fixture
def old(carol: APIClient, project: Project) -> Project:
    """A project from when a path could be a backbone."""
    Project.objects.filter(pk=project.pk).update(training_config={"backbone": "/srv/models/old", "epochs": 1})
    project.refresh_from_db()
    return project


def test_an_old_projects_path_is_readable_and_starts_nothing(old: Project, carol: APIClient) -> None:
    assert carol.get("/api/v1/projects/talk/").status_code == 200
    with pytest.raises(CommandError, match="backbone must be one of these names: minilm"):
        call_command("retrain", "talk")
    Project.objects.filter(pk=old.pk).update(retrain_after_labels=1)
    assert tasks.start_due_runs() == 0
    assert carol.patch("/api/v1/projects/talk/", {"training_config": {"epochs": 1}}).status_code == 200
    assert carol.post("/api/v1/projects/talk/training-runs/", {}).status_code == 202


def test_an_old_run_says_what_to_do_when_it_is_retried(old: Project, carol: APIClient) -> None:
    run = TrainingRun.objects.create(project=old, reason="a test", state=RunState.FAILED, config=old.training_config)
    shown = carol.get(f"/api/v1/training-runs/{run.pk}/")
    assert (shown.status_code, shown.json()["config"]) == (200, {"backbone": ".../old", "epochs": 1})
    answer = carol.post(f"/api/v1/training-runs/{run.pk}/retry/")
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_config")
    assert "Start a new run with other settings" in answer.json()["detail"]
    assert "one of these names: minilm" in answer.json()["detail"]


def test_an_old_run_in_the_queue_trains_on_nothing_unlisted(db: None) -> None:
    run = TrainingRun.objects.create(
        project=labelled_project(), reason="a test", config={"backbone": "/srv/models/old"}
    )
    tasks.train(run.pk)
    run.refresh_from_db()
    assert run.state == RunState.FAILED
    assert "backbone must be one of these names" in run.error


def test_weights_that_are_a_pickle_are_refused_unread(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'touch pickled'\ntR.")
    with pytest.raises(
        PickledBackbone, match=r"the backbone mine has its weights as pytorch_model\.bin only, a pickle"
    ):
        find_backbone("mine", source=str(tmp_path))


# An end to every run ----------------------------------------------------------------------------------------


@pytest.fixture
def slow_trainer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: LazySettings) -> Path:
    """In the trainer's place a program that works for a minute, and notes when it is asked to end."""
    program = tmp_path / "trainer"
    program.write_text(f"#!/bin/sh\ntrap 'touch {tmp_path}/asked; exit 143' TERM\nsleep 60 & wait\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    settings.RUN_HEARTBEAT_SECONDS = 0.1
    return tmp_path / "asked"


@pytest.mark.parametrize(
    ("hours", "config", "said"),
    [
        (0.0001, {}, "the longest that a run may work here (the operator's RUN_HOURS)"),
        (24, {"max_hours": 0.0001}, "its max_hours"),
    ],
)
def test_a_run_ends_when_its_time_is_over(
    db: None, slow_trainer: Path, settings: LazySettings, hours: float, config: dict[str, Any], said: str
) -> None:
    settings.RUN_HOURS = hours
    run = runs.request(labelled_project(), reason="a test", config=config)
    began = time.monotonic()
    tasks.train(run.pk)
    run.refresh_from_db()
    assert time.monotonic() - began < 30
    assert run.state == RunState.FAILED
    assert run.error.startswith("The run was ended after 0.0001 hours, ")
    assert said in run.error
    assert slow_trainer.exists(), "politely"


def test_the_time_of_earlier_attempts_counts(db: None, slow_trainer: Path, settings: LazySettings) -> None:
    settings.RUN_HOURS = 1
    run = runs.request(labelled_project(), reason="a test")
    TrainingRun.objects.filter(pk=run.pk).update(worked_seconds=3599.9)
    tasks.train(run.pk)
    run.refresh_from_db()
    assert "after 1 hours" in run.error


def test_a_managers_limit_is_within_the_operators(carol: APIClient, settings: LazySettings) -> None:
    settings.RUN_HOURS = 2
    for said in each(through_rest(carol, {"max_hours": 3})):
        assert "max_hours must be at most 2, the operator's RUN_HOURS, not 3" in said


# No path of this machine -----------------------------------------------------------------------------------

TALKATIVE = """#!/bin/sh
echo "Traceback in {base}/rewards/learning/train.py, /usr/lib/python3/site-packages/torch/x.py and {artifacts}/runs"
echo '{{"event": "start", "config": {{"snapshot": "{artifacts}/snapshots/talk/c0"}}}}' > "$4/progress.jsonl"
echo "there is no $4/config.json" >&2
exit 2
"""


def test_a_managers_run_names_no_folder_of_the_machine(
    cast: Cast, as_user: As, tmp_path: Path, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trainer's log, its last words and its events, over REST."""
    program = tmp_path / "trainer"
    program.write_text(TALKATIVE.format(base=settings.BASE_DIR, artifacts=settings.ARTIFACTS))
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    run = runs.request(labelled_project(), reason="a test")
    tasks.train(run.pk)
    run.project.memberships.create(user=cast.carol, role="manager")
    shown = as_user(cast.carol).get(f"/api/v1/training-runs/{run.pk}/").json()
    assert shown["error"] == f"The trainer refused: there is no artifacts/runs/{run.pk}/config.json."
    assert "rewards/learning/train.py, .../x.py and artifacts/runs" in shown["log"]
    assert shown["progress"]["config"] == {"snapshot": "artifacts/snapshots/talk/c0"}
    everything = json.dumps(shown)
    assert not [place for place in ("/usr", "/tmp", str(settings.BASE_DIR)) if place in everything]


def test_an_error_that_nobody_foresaw_names_none_either(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: Any) -> None:
        raise FileNotFoundError(2, "No such file", "/srv/somewhere/else/metrics.json")

    monkeypatch.setattr(trainer_process, "_progress", lost)
    monkeypatch.setattr(sys, "executable", "/bin/true")
    run = runs.request(labelled_project(), reason="a test")
    with pytest.raises(FileNotFoundError):
        tasks.train(run.pk)
    run.refresh_from_db()
    assert run.error.endswith("'.../metrics.json'")


def test_what_is_wrong_with_files_is_told_by_their_names(cast: Cast, project: Project, settings: LazySettings) -> None:
    run = TrainingRun.objects.create(project=project, reason="a test", state=RunState.PROMOTED)
    model = RewardModel.objects.create(
        project=project,
        run=run,
        version=1,
        path=f"runs/{run.pk}/model",
        attributes=[],
        attribute_weights={},
        manifest={"files": {"model.safetensors": "0"}},
    )
    problems = registry.verify(model)
    assert problems[0] == f"runs/{run.pk}/model/model.safetensors is missing."
    assert str(settings.ARTIFACTS) not in " ".join(problems)


@pytest.mark.slow
def test_a_stored_model_names_no_folder_of_the_machine(db: None, settings: LazySettings) -> None:
    """Nor the one of its snapshot, nor the one of its backbone."""
    run = runs.request(labelled_project(), reason="a test", config={"epochs": 0, "threads": 1})
    tasks.train(run.pk)
    run.refresh_from_db()
    model = RewardModel.objects.get(run=run)
    places = [str(settings.ARTIFACTS), str(settings.BASE_DIR), sys.prefix, "site-packages"]
    texts = {path.name: path.read_text() for path in model.directory().glob("*.json")}
    assert "reward_model.json" in texts
    texts["the run's row"] = json.dumps([run.log, run.progress, run.metrics, run.losses])
    assert [(name, place) for name, text in texts.items() for place in places if place in text] == []
