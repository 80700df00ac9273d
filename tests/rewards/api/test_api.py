"""Snapshots, training runs, reward models and scores over REST."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from annotator.accounts import tokens
from annotator.models import Project, Response, Role
from rewards.models import Evaluation, RewardModel, RunState, Score, ScoringJob, Snapshot, SnapshotJob, TrainingRun
from rewards.reasons import coded
from rewards.scoring import MOST_ITEMS
from rewards.snapshots import snapshot_jobs
from tests.builders import ATTRIBUTES, imported, label_row, make_member, make_project, make_task, make_user
from tests.conftest import As, Cast

ITEM = {"conversation": [{"role": "user", "content": "Why?"}], "response": "Because."}


def make_run(project: Project, state: str = RunState.PROMOTED, **fields: Any) -> TrainingRun:
    return TrainingRun.objects.create(project=project, reason="a test", state=state, **fields)


def make_model(project: Project, **fields: Any) -> RewardModel:
    run = make_run(project)
    weights = dict.fromkeys(ATTRIBUTES, 0.2)
    common = {"attributes": list(ATTRIBUTES), "attribute_weights": weights, "manifest": {}, "path": "models/none"}
    return RewardModel.objects.create(project=project, run=run, version=run.pk, **common, **fields)


def told(answer: Any) -> tuple[int, str]:
    assert set(answer.json()) == {"detail", "code", "errors"}
    return answer.status_code, answer.json()["code"]


def listed(client: APIClient, path: str) -> Any:
    answer = client.get(f"/api/v1/{path}")
    assert (answer.status_code, set(answer.json())) == (200, {"next", "previous", "results"})
    return answer.json()["results"]


def growth(make: Callable[[int], object], client: APIClient, path: str) -> tuple[int, int]:
    """Queries for three rows and for twenty."""
    counts = []
    for numbers in (range(3), range(3, 20)):
        for number in numbers:
            make(number)
        with CaptureQueriesContext(connection) as captured:
            listed(client, path)
        counts.append(len(captured))
    return counts[0], counts[1]


# Snapshots -------------------------------------------------------------------------------------------------


@pytest.fixture
def labelled(project: Project) -> Project:
    imported(project, *(label_row(f"Question {number}?", f"Answer {number}.") for number in range(60)))
    return project


def asked(client: APIClient) -> Any:
    """The answer to a request for a snapshot, as it is once the worker has had its turn."""
    answer = client.post("/api/v1/projects/talk/snapshots/")
    assert (answer.status_code, answer.json()["state"]) == (202, "queued"), answer.json()
    snapshot_jobs.build_waiting()
    assert answer.headers["Location"] == f"/api/v1/snapshot-jobs/{answer.json()['id']}/"
    polled = client.get(answer.headers["Location"])
    assert polled.status_code == 200
    return polled.json()


def test_a_snapshot_is_taken_once_for_the_same_labels(carol: APIClient, labelled: Project, workers: None) -> None:
    first, again = (asked(carol) for _ in range(2))
    assert (first["state"], first["code"], first["error"], first["tasks"]) == ("done", "", "", 60)
    assert first["id"] != again["id"]
    assert first["snapshot"] == again["snapshot"] == listed(carol, "projects/talk/snapshots/")[0]
    expected = {"id", "project", "content_hash", "train_tasks", "validation_tasks", "labels", "manifest", "created_at"}
    expected |= {"redacted_tasks", "deleted_tasks", "marked_at", "erased_at"}
    assert set(first["snapshot"]) == expected
    assert (first["snapshot"]["labels"], first["snapshot"]["project"]) == (60, "talk")
    assert len(listed(carol, "projects/talk/snapshots/")) == 1


def test_who_asks_again_before_the_worker_begins_gets_the_same_job(
    carol: APIClient, labelled: Project, workers: None
) -> None:
    first, again = (carol.post("/api/v1/projects/talk/snapshots/").json() for _ in range(2))
    assert first == again
    assert SnapshotJob.objects.count() == 1


def test_who_asks_while_one_is_built_gets_a_later_one(carol: APIClient, labelled: Project, workers: None) -> None:
    """The one that is built may have passed the tasks that were labelled just now."""
    first = carol.post("/api/v1/projects/talk/snapshots/").json()["id"]
    SnapshotJob.objects.filter(pk=first).update(state=SnapshotJob.State.BUILDING)
    assert carol.post("/api/v1/projects/talk/snapshots/").json()["id"] != first


def test_without_labels_there_is_no_snapshot(carol: APIClient, workers: None) -> None:
    assert told(carol.post("/api/v1/projects/talk/snapshots/")) == (409, "not_enough_labels")
    assert not SnapshotJob.objects.exists()


def test_with_no_worker_a_snapshot_is_refused_at_once(carol: APIClient, labelled: Project) -> None:
    assert told(carol.post("/api/v1/projects/talk/snapshots/")) == (503, "no_worker")
    assert not SnapshotJob.objects.exists()


def test_a_refusal_of_the_worker_is_shown_where_the_snapshot_would_be(
    carol: APIClient, project: Project, workers: None
) -> None:
    imported(project, label_row("The only question?", "The only answer."))
    polled = asked(carol)
    assert (polled["state"], polled["code"], polled["snapshot"]) == ("failed", "not_enough_labels", None)
    assert "both must be there" in polled["error"]
    assert polled["finished_at"]
    assert not Snapshot.objects.exists()


# Training runs ---------------------------------------------------------------------------------------------


def requested(client: APIClient, **fields: Any) -> Any:
    return client.post("/api/v1/projects/talk/training-runs/", fields)


def test_with_no_worker_a_run_is_refused_at_once(carol: APIClient) -> None:
    answer = requested(carol)
    assert told(answer) == (503, "no_worker")
    assert "celery" in answer.json()["detail"]
    assert not TrainingRun.objects.exists()


def test_without_labels_a_run_is_refused_at_once(carol: APIClient, workers: None) -> None:
    answer = requested(carol)
    assert told(answer) == (409, "not_enough_labels")
    assert "There are no labels and no preferences" in answer.json()["detail"]


def test_a_run_answers_202_and_where_it_is(carol: APIClient, cast: Cast, labelled: Project, workers: None) -> None:
    answer = requested(carol, reason="new labels", config={"epochs": 1, "seed": 7})
    run = TrainingRun.objects.get()
    assert (answer.status_code, answer.headers["Location"]) == (202, f"/api/v1/training-runs/{run.pk}/")
    assert (run.reason, run.requested_by, run.seed, run.config["epochs"]) == ("new labels", cast.carol, 7, 1)
    shown = carol.get(answer.headers["Location"]).json()
    assert (shown["state"], shown["project"], shown["reward_model"], shown["snapshot"]) == (
        "queued",
        "talk",
        None,
        None,
    )
    assert {"progress", "losses", "metrics", "verdict", "error", "log", "config"} < set(shown)


def test_a_run_with_nothing_new_to_learn_starts_and_says_so(carol: APIClient, labelled: Project, workers: None) -> None:
    model = make_model(labelled)
    TrainingRun.objects.filter(pk=model.run_id).update(created_at=timezone.now())
    assert requested(carol).json()["unchanged_since"] == model.version
    TrainingRun.objects.filter(state=RunState.QUEUED).delete()
    TrainingRun.objects.update(created_at=timezone.now() - timedelta(days=36_500))
    assert requested(carol).json()["unchanged_since"] is None


def test_one_run_at_a_time(carol: APIClient, labelled: Project, workers: None) -> None:
    assert requested(carol).status_code == 202
    assert told(requested(carol)) == (409, "already_running")
    assert TrainingRun.objects.count() == 1


@pytest.mark.parametrize(
    ("config", "code"),
    [
        ({"epoch": 1}, "bad_config"),
        ({"epochs": "1"}, "bad_config"),
        ({"epochs": -1}, "bad_config"),
        ({"learning_rate": 0}, "bad_config"),
        ({"device": "tpu"}, "bad_config"),
        ({"backbone": ""}, "bad_config"),
        ({"seed": 10**30}, "invalid"),
        ([], "invalid"),
        ("fast", "invalid"),
        (None, "invalid"),
    ],
)
def test_settings_that_the_trainer_refuses_start_nothing(
    carol: APIClient, workers: None, config: Any, code: str
) -> None:
    assert told(requested(carol, config=config)) == (400, code)
    assert not TrainingRun.objects.exists()


def test_the_project_s_settings_are_checked_too(carol: APIClient, project: Project, workers: None) -> None:
    answer = carol.patch("/api/v1/projects/talk/", {"training_config": {"epoch": 3}})
    assert told(answer) == (400, "invalid")
    assert "unknown keys in the configuration: epoch" in answer.json()["detail"]


def test_reasons_are_answered_in_english(carol: APIClient, project: Project, german: Mapping[str, str]) -> None:
    run = make_run(project, verdict={"promote": False, "reason": coded("all_the_same")})
    TrainingRun.objects.update(reason=coded("failed_before", run="3"))
    answer = carol.get(f"/api/v1/training-runs/{run.pk}/", headers=dict(german)).json()
    assert answer["reason"] == "run 3 again, which failed"
    assert answer["verdict"] == {"promote": False, "reason": "It gives every response the same scores."}


@pytest.mark.parametrize("fields", [{"reason": "x" * 201}, {"reason": ""}, {"raeson": "typed"}])
def test_a_request_that_is_not_right_is_400(carol: APIClient, workers: None, fields: dict[str, str]) -> None:
    assert told(requested(carol, **fields)) == (400, "invalid")


def test_a_run_is_cancelled(carol: APIClient, project: Project) -> None:
    run = make_run(project, RunState.QUEUED)
    answer = carol.post(f"/api/v1/training-runs/{run.pk}/cancel/")
    assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")


def test_a_run_names_its_model(carol: APIClient, project: Project) -> None:
    model = make_model(project)
    assert carol.get(f"/api/v1/training-runs/{model.run_id}/").json()["reward_model"] == model.pk


def test_the_list_of_runs_grows_without_queries(carol: APIClient, project: Project) -> None:
    few, many = growth(lambda _: make_model(project), carol, "projects/talk/training-runs/")
    assert few == many


# Reward models ---------------------------------------------------------------------------------------------


def test_a_model_is_shown_with_its_evaluations(carol: APIClient, project: Project) -> None:
    model = make_model(project, is_champion=True)
    Evaluation.objects.create(reward_model=model, name="validation", data_hash="x", metrics={"rmse": 0.5})
    task = make_task(project)
    for response in Response.objects.filter(task=task):
        Score.objects.create(reward_model=model, response=response, scores={}, reward=1.0)
    (row,) = listed(carol, "reward-models/?is_champion=true&project__slug=talk")
    assert (row["id"], row["project"], row["scored"]) == (model.pk, "talk", 2)
    assert row["evaluations"] == {"validation": {"rmse": 0.5}}


def test_every_number_says_of_which_prompts_and_labels_it_is(carol: APIClient, project: Project) -> None:
    model = make_model(project, is_champion=True)
    counts = {"train_labels": 66, "validation_labels": 52, "validation_prompts": 26}
    size = dict.fromkeys(("train_tasks", "validation_tasks", "labels"), 1)
    snapshot = Snapshot.objects.create(
        project=project, content_hash="c0ffee", path="none", manifest={"counts": counts}, **size
    )
    TrainingRun.objects.filter(pk=model.run_id).update(snapshot=snapshot, verdict={"prompts": 59})
    metrics = {
        "attributes": {"helpfulness": {"prompts": 26}},
        "pairwise": {"pairs": 117, "accuracy": 0.769, "longer_wins": 0.769},
    }
    Evaluation.objects.create(reward_model=model, name="validation", data_hash="x", metrics=metrics)
    (row,) = listed(carol, "reward-models/")
    assert (row["learnt_labels"], row["held_out_labels"]) == (66, 52)
    assert row["measured_on"].startswith("Measured on 26 held-out prompts")
    assert row["beside_length"].startswith("It orders pairs no better than by their length")
    run = carol.get(f"/api/v1/training-runs/{model.run_id}/").json()
    assert run["judged_on"].startswith("Of these 59 prompts, 26 are held out")


def test_models_are_filtered(carol: APIClient, project: Project) -> None:
    make_model(project)
    assert listed(carol, "reward-models/?is_champion=true") == []
    assert listed(carol, "reward-models/?project__slug=other") == []
    assert [model["project"] for model in listed(carol, "reward-models/?project=talk")] == ["talk"]
    assert listed(carol, "reward-models/?project=other") == []


def test_annotators_and_strangers_see_no_models(project: Project, cast: Cast, as_user: As) -> None:
    make_model(project, is_champion=True)
    assert listed(as_user(cast.alice), "reward-models/") == listed(as_user(cast.dave), "reward-models/") == []


def test_the_list_of_models_grows_without_queries(carol: APIClient, project: Project) -> None:
    few, many = growth(lambda _: make_model(project), carol, "reward-models/")
    assert few == many == 2


def test_a_promotion_takes_the_champion_s_place(carol: APIClient, project: Project) -> None:
    old, new = make_model(project, is_champion=True), make_model(project)
    answer = carol.post(f"/api/v1/reward-models/{new.pk}/promote/")
    assert (answer.status_code, answer.json()["is_champion"], answer.json()["scored"]) == (200, True, 0)
    assert answer.json()["promoted_at"]
    assert list(RewardModel.objects.filter(is_champion=True)) == [new]
    assert carol.post(f"/api/v1/reward-models/{old.pk}/promote/").json()["is_champion"], "the rollback"


# Scores ----------------------------------------------------------------------------------------------------


def scored(client: APIClient, items: Any = (ITEM,), **fields: Any) -> Any:
    return client.post("/api/v1/score/", {"items": items, **fields})


def test_without_a_champion_there_is_nothing_to_score_with(carol: APIClient) -> None:
    assert told(scored(carol)) == (409, "no_champion")
    assert told(scored(carol, project="talk")) == (409, "no_champion")


def test_with_no_worker_scoring_is_refused_at_once(carol: APIClient, project: Project) -> None:
    make_model(project, is_champion=True)
    assert told(scored(carol)) == (503, "no_worker")
    assert not ScoringJob.objects.exists()


def test_two_champions_ask_for_a_choice(carol: APIClient, project: Project, cast: Cast) -> None:
    other = make_project("other")
    make_member(other, cast.carol, role=Role.MANAGER)
    for owner in (project, other):
        make_model(owner, is_champion=True)
    answer = scored(carol)
    assert (told(answer), list(answer.json()["errors"])) == ((400, "invalid"), ["model"])
    assert told(scored(carol, project="other")) == (503, "no_worker")


@pytest.mark.parametrize(
    "items",
    [
        [],
        None,
        {},
        "text",
        [3],
        [{}],
        [ITEM | {"response": ""}],
        [ITEM | {"response": 3.5, "conversation": []}],
        [ITEM | {"conversation": [{"role": "king", "content": "Why?"}]}],
        [ITEM | {"conversation": [{"role": "user"}]}],
        [ITEM | {"conversation": "Why?"}],
        [ITEM | {"reponse": "typed"}],
        [ITEM] * (MOST_ITEMS + 1),
    ],
    ids=lambda items: str(items)[:60],
)
def test_items_that_are_not_right_are_400(carol: APIClient, project: Project, items: Any) -> None:
    make_model(project, is_champion=True)
    answer = scored(carol, items)
    assert told(answer) == (400, "invalid")
    assert all(place.startswith("items") for place in answer.json()["errors"])


@pytest.mark.parametrize("model", [10**30, -1, 0])
def test_a_model_that_is_not_there_is_404(carol: APIClient, project: Project, model: int) -> None:
    make_model(project, is_champion=True)
    assert told(scored(carol, model=model)) == (404, "not_found")


def test_a_model_of_another_project_than_the_named_one_is_404(carol: APIClient, project: Project, cast: Cast) -> None:
    other = make_project("other")
    make_member(other, cast.carol, role=Role.MANAGER)
    model = make_model(project, is_champion=True)
    assert told(scored(carol, model=model.pk, project="other")) == (404, "not_found")
    assert told(scored(carol, model=model.pk, project="talk")) == (503, "no_worker")


def test_annotators_score_nothing(project: Project, cast: Cast, as_user: As) -> None:
    model = make_model(project, is_champion=True)
    assert told(scored(as_user(cast.alice), model=model.pk)) == (404, "not_found")
    assert told(scored(as_user(cast.alice), project="talk")) == (404, "not_found")
    assert told(scored(as_user(cast.alice))) == (409, "no_champion")


def test_what_takes_longer_answers_202_with_a_job(
    carol: APIClient, project: Project, workers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model(project, is_champion=True)
    monkeypatch.setattr("rewards.api.scores.SCORE_WAIT_SECONDS", 0.0)
    answer = scored(carol)
    job = ScoringJob.objects.get()
    assert (answer.status_code, answer.headers["Location"]) == (202, f"/api/v1/scoring-jobs/{job.pk}/")
    assert set(answer.json()) == {"id", "model", "state", "results", "error", "created_at"}
    assert (answer.json()["model"], answer.json()["state"]) == (model.pk, "queued")


def test_a_job_is_its_asker_s_alone(carol: APIClient, project: Project, cast: Cast, as_user: As) -> None:
    results = [{"scores": {"helpfulness": 3.5}, "reward": 1.0}]
    job = ScoringJob.objects.create(
        reward_model=make_model(project), requested_by=cast.carol, items=[], state="done", results=results
    )
    assert carol.get(f"/api/v1/scoring-jobs/{job.pk}/").json()["results"] == results
    root = make_user("root", is_superuser=True)
    assert told(as_user(root).get(f"/api/v1/scoring-jobs/{job.pk}/")) == (404, "not_found")


def test_old_jobs_are_cleared(
    carol: APIClient, project: Project, cast: Cast, workers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model(project, is_champion=True)
    old = ScoringJob.objects.create(reward_model=model, requested_by=cast.carol, items=[])
    ScoringJob.objects.update(created_at=timezone.now() - timedelta(days=2))
    monkeypatch.setattr("rewards.api.scores.SCORE_WAIT_SECONDS", 0.0)
    scored(carol)
    assert not ScoringJob.objects.filter(pk=old.pk).exists()


def test_a_project_is_deleted_with_its_models(carol: APIClient, project: Project) -> None:
    make_model(project, is_champion=True)
    carol.post("/api/v1/projects/talk/archive/")
    assert carol.delete("/api/v1/projects/talk/?confirm=talk").status_code == 204
    assert not RewardModel.objects.exists()


# What a manager decides -------------------------------------------------------------------------------------


def test_a_failed_run_is_retried(carol: APIClient, project: Project, workers: None) -> None:
    failed = make_run(project, RunState.FAILED, config={"seed": 5})
    answer = carol.post(f"/api/v1/training-runs/{failed.pk}/retry/")
    assert (answer.status_code, answer.json()["seed"]) == (202, 5)
    assert answer.headers["Location"] == f"/api/v1/training-runs/{answer.json()['id']}/"
    assert told(carol.post(f"/api/v1/training-runs/{answer.json()['id']}/retry/")) == (409, "not_ended")


def test_a_model_that_waits_is_rejected(carol: APIClient, project: Project) -> None:
    run = make_model(project).run
    TrainingRun.objects.filter(pk=run.pk).update(state=RunState.AWAITING_PROMOTION)
    assert carol.post(f"/api/v1/training-runs/{run.pk}/reject/").json()["state"] == "rejected"
    assert told(carol.post(f"/api/v1/training-runs/{run.pk}/reject/")) == (409, "nothing_to_decide")


def test_a_snapshot_with_redacted_text_is_erased(carol: APIClient, labelled: Project, workers: None) -> None:
    taken = asked(carol)["snapshot"]
    assert told(carol.post(f"/api/v1/snapshots/{taken['id']}/erase/")) == (409, "nothing_to_erase")
    labelled.tasks.all()[0].delete()
    answer = carol.post(f"/api/v1/snapshots/{taken['id']}/erase/").json()
    assert answer["deleted_tasks"] == 1
    assert answer["erased_at"]


def test_a_model_s_files_are_checked(carol: APIClient, project: Project) -> None:
    answer = carol.get(f"/api/v1/reward-models/{make_model(project).pk}/verification/").json()
    assert not answer["intact"]
    assert "reward_model.json cannot be read" in answer["problems"][0]


def test_only_a_manager_s_token_has_files_checked(project: Project, cast: Cast, as_user: As) -> None:
    address = f"/api/v1/reward-models/{make_model(project).pk}/verification/"
    token = tokens.issue(cast.carol, scopes=["read"])[1]
    answer = APIClient().get(address, headers={"X-Api-Key": str(token)})
    assert told(answer) == (403, "scope_missing")
    assert as_user(cast.alice).get(address).status_code == 403
    assert as_user(cast.dave).get(address).status_code == 404


def test_whoever_promotes_hears_that_scores_come_later(carol: APIClient, project: Project) -> None:
    make_task(project)
    answer = carol.post(f"/api/v1/reward-models/{make_model(project).pk}/promote/").json()
    assert answer["is_champion"]
    assert answer["scores_wait"].startswith("Scores will follow later. No worker is running for the queue 'score'.")


def test_whoever_promotes_waits_for_no_scores_where_a_worker_listens(
    carol: APIClient, project: Project, workers: None
) -> None:
    make_task(project)
    assert carol.post(f"/api/v1/reward-models/{make_model(project).pk}/promote/").json()["scores_wait"] == ""
