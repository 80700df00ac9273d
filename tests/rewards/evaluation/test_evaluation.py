"""A model judged on a file: the row that stays, and the doors to it."""

import json
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from rest_framework.test import APIClient

from annotator.models import Project
from rewards.evaluation import evaluation
from rewards.evaluation.comparison import compare
from rewards.models import Evaluation, Snapshot
from rewards.runs import training
from tests.annotator.models.test_constraints import make_model
from tests.builders import make_project
from tests.conftest import As, Cast
from tests.refusals import refusal
from tests.rewards.api.test_api import growth, listed, make_run, told
from tests.rewards.evaluated import HASH, benchmark_metrics, make_evaluation, snapshot_metrics

METRICS = {**benchmark_metrics(0.5), "data": {"sha256": "c0ffee", "format": "RewardBench 2", "rows": 1}}


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch) -> mock.Mock:
    """Without the process that loads the model."""
    fake = mock.Mock(return_value=METRICS)
    monkeypatch.setattr(evaluation, "measured", fake)
    return fake


@pytest.fixture
def rows(tmp_path: Path) -> str:
    (tmp_path / "rb2.jsonl.gz").write_bytes(b"")
    return str(tmp_path / "rb2.jsonl.gz")


def test_judging_again_on_the_same_data_keeps_one_row(project: Project, measuring: mock.Mock, rows: str) -> None:
    model = make_model(project, 1)
    first, again = (evaluation.evaluate(model, rows) for _ in range(2))
    assert first == again == Evaluation.objects.get()
    assert (first.name, first.data_hash) == ("rb2", "c0ffee")


def test_a_data_set_of_the_hub_is_not_looked_for_on_the_disk(project: Project, measuring: mock.Mock) -> None:
    row = evaluation.evaluate(make_model(project, 1), "hub:allenai/reward-bench-2@test")
    assert row.name == "allenai/reward-bench-2@test"


def test_a_file_that_is_not_there_is_refused(project: Project) -> None:
    with refusal("evaluation_failed", match=r"no file /nowhere\.jsonl"):
        evaluation.evaluate(make_model(project, 1), "/nowhere.jsonl")


@pytest.mark.slow
def test_what_the_learning_core_refuses_comes_back_as_its_sentence(project: Project, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps({"text": "?"}))
    with refusal("evaluation_failed", match=r"columns text.*RewardBench 2: id, prompt"):
        evaluation.evaluate(make_model(project, 1), str(tmp_path / "rows.jsonl"))


def test_the_command_stores_what_it_prints(
    project: Project, measuring: mock.Mock, rows: str, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("evaluate", str(make_model(project, 1).pk), rows, name="RewardBench 2")
    assert json.loads(capsys.readouterr().out) == METRICS
    assert Evaluation.objects.get().name == "RewardBench 2"


def test_the_command_tells_a_refusal_in_a_sentence(project: Project) -> None:
    with pytest.raises(CommandError, match="no file"):
        call_command("evaluate", str(make_model(project, 1).pk), "/nowhere.jsonl")


# REST ------------------------------------------------------------------------------------------------------


def test_evaluations_are_found_by_project_model_and_name(project: Project, carol: APIClient) -> None:
    first, second = make_model(project, 1), make_model(project, 2)
    make_evaluation(first), make_evaluation(second), make_evaluation(second, name="rb2")
    assert len(listed(carol, "evaluations/")) == 3
    assert len(listed(carol, "evaluations/?project=talk&name=validation")) == 2
    (evaluation_row,) = listed(carol, f"evaluations/?model={second.pk}&name=rb2")
    assert (evaluation_row["project"], evaluation_row["version"], evaluation_row["metrics"]["rmse"]) == ("talk", 2, 0.9)
    assert listed(carol, "evaluations/?project=other") == []


def test_nobody_sees_the_evaluations_of_others(project: Project, cast: Cast, as_user: As) -> None:
    make_evaluation(make_model(project, 1))
    make_evaluation(make_model(make_project("other"), 1))
    assert len(listed(as_user(cast.carol), "evaluations/")) == 1
    assert listed(as_user(cast.alice), "evaluations/") == []
    assert listed(as_user(cast.dave), "evaluations/") == []


def test_the_comparison_is_taken_away_as_json_or_csv(project: Project, carol: APIClient) -> None:
    make_evaluation(make_model(project, 1))
    rows = carol.get("/api/v1/projects/talk/comparison/?name=validation").json()
    answer: Any = carol.get("/api/v1/projects/talk/comparison/?format=csv", HTTP_ACCEPT="text/csv")
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert len(b"".join(answer.streaming_content).decode().splitlines()) == len(rows) + 1
    assert carol.get("/api/v1/projects/talk/comparison/?name=none").json() == []


def test_an_unknown_format_is_refused(project: Project, carol: APIClient) -> None:
    assert told(carol.get("/api/v1/projects/talk/comparison/?format=xml"))[0] == 400


# The page --------------------------------------------------------------------------------------------------


def shown(client: Client, query: str = "") -> str:
    answer = client.get(f"/projects/talk/comparison/{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_page_shows_versions_side_by_side(project: Project, pages: Client) -> None:
    make_evaluation(make_model(project, 1, is_champion=True), rmse=0.9)
    make_evaluation(make_model(project, 2), rmse=0.8)
    text = shown(pages)
    assert "Version 1" in text
    assert "Champion" in text
    assert "<strong>0.800</strong>" in text
    assert "0.700 to 0.900" in text


def test_the_page_chooses_by_what_was_judged_on(project: Project, pages: Client) -> None:
    model = make_model(project, 1)
    make_evaluation(model)
    other = make_evaluation(model, name="rb2", metrics=benchmark_metrics(0.5))
    assert "Math has 1 of 183 rows" in shown(pages, f"?of={other.pk}")
    assert "Judged on" in shown(pages, "?of=nothing")


def test_what_makes_the_numbers_mean_less_is_said_above_them(project: Project, pages: Client) -> None:
    odd: list[dict[str, Any]] = [{"constant": ["verbosity"]}, {"not_finite": 3}, {"seen_in_training": 4}]
    for version, more in enumerate(odd, start=1):
        make_evaluation(make_model(project, version), metrics=snapshot_metrics(0.9) | more)
    text = shown(pages)
    assert "Version 1 gives every response the same Verbosity." in text
    assert "Version 2: 3 scores are not numbers." in text
    assert "Version 3 was trained on the prompts of 4 of these rows." in text


def test_a_page_without_evaluations_says_how_to_get_one(project: Project, pages: Client) -> None:
    assert "No model has been judged yet" in shown(pages)


def test_the_page_asks_no_more_of_the_database_for_more_versions(
    project: Project, pages: Client, django_assert_max_num_queries: Any
) -> None:
    for version in range(1, 9):
        make_evaluation(make_model(project, version))
    with django_assert_max_num_queries(13):
        shown(pages)


def test_of_one_name_the_newest_is_shown_with_the_model(project: Project, carol: APIClient) -> None:
    model = make_model(project, 1)
    make_evaluation(model, rmse=0.9), make_evaluation(model, rmse=0.8, data_hash="1" * 64)
    (model_row,) = listed(carol, "reward-models/")
    assert model_row["evaluations"]["validation"]["rmse"] == 0.8
    assert "slices" not in model_row["evaluations"]["validation"]


def test_a_run_keeps_what_it_found_of_the_champion_too(project: Project, settings: Any, tmp_path: Path) -> None:
    settings.ARTIFACTS = tmp_path
    champion, run = make_model(project, 1, is_champion=True), make_run(project, metrics={"candidate": {"rmse": 0.8}})
    manifest = {"files": {"validation.jsonl": HASH}}
    snapshot = Snapshot.objects.create(
        project=project, content_hash="c", path="s", manifest=manifest, train_tasks=1, validation_tasks=1, labels=2
    )
    for name, content in (
        ("model/reward_model.json", {"attributes": [], "attribute_weights": {}}),
        ("champion/metrics.json", {"rmse": 0.9}),
    ):
        (run.directory() / name).parent.mkdir(parents=True)
        (run.directory() / name).write_text(json.dumps(content))
    training._stored(run, snapshot, champion)
    compared = compare(project, name="validation", data_hash=HASH).evaluations
    assert [(evaluation.reward_model.version, evaluation.metrics["rmse"]) for evaluation in compared] == [
        (1, 0.9),
        (2, 0.8),
    ]


def test_many_evaluations_are_listed_in_as_many_queries_as_few(project: Project, carol: APIClient) -> None:
    model = make_model(project, 1)
    few, many = growth(lambda number: make_evaluation(model, data_hash=str(number)), carol, "evaluations/")
    assert few == many
