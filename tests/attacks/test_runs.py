"""Runs, snapshots and promotions: asked for twice, behind a long one, without labels, against the gate's verdict."""

import random
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from django.conf import LazySettings
from django.db import connection
from django.test import Client

from annotator.infrastructure.background import redis_client
from annotator.models import AuditEntry, Project, Task
from rewards import snapshots
from rewards.learning.config import config_hash
from rewards.models import RewardModel, RunState, ScoringLane, Snapshot, SnapshotJob, TrainingRun
from rewards.promotion.promotion import Verdict
from rewards.reasons import in_words
from rewards.runs import repeated_runs, runs
from rewards.runs.run_settings import check_config, settled
from rewards.scoring import unlikely_ratings
from rewards.snapshots import building, snapshot_jobs
from tests.annotator.models.test_constraints import make_model
from tests.builders import NOW, imported, make_member, make_project, make_task, make_user
from tests.conftest import As, Cast
from tests.rewards.labelled import labelled_project, preferred_project

NO = Verdict(False, "No evidence that it is better.", "the champion", -0.1, -0.3, 0.1, prompts=20)


# Asked for twice --------------------------------------------------------------------------------------------


@pytest.fixture
def empty_queue() -> Iterator[None]:
    """Also for those who come after: no worker can read what these tests put in."""
    redis_client.connection().delete("train")
    yield
    redis_client.connection().delete("train")


def test_hours_behind_a_long_run_add_no_messages(
    project: Project, empty_queue: None, django_capture_on_commit_callbacks: Any
) -> None:
    """Real messages in a real Redis, which no worker takes."""
    run = TrainingRun.objects.create(project=project, reason="a test")
    with django_capture_on_commit_callbacks(execute=True):
        runs.send(run)
    for minute in range(1, 50):
        with django_capture_on_commit_callbacks(execute=True):
            runs.recover_lost(now=run.created_at + timedelta(minutes=1.1 * minute))
    assert redis_client.connection().llen("train") == 1


def test_a_run_that_redis_has_forgotten_is_sent_again_within_two_minutes(
    project: Project, empty_queue: None, django_capture_on_commit_callbacks: Any
) -> None:
    run = TrainingRun.objects.create(project=project, reason="a test")
    with django_capture_on_commit_callbacks(execute=True):
        assert runs.recover_lost(now=run.created_at + timedelta(minutes=2)) == [run]
    assert redis_client.connection().llen("train") == 1


def test_a_message_of_another_run_hides_a_forgotten_one_for_an_hour_only(project: Project, empty_queue: None) -> None:
    run = TrainingRun.objects.create(project=project, reason="a test")
    redis_client.connection().lpush("train", "another's")
    assert runs.recover_lost(now=run.created_at + timedelta(minutes=59)) == []
    assert runs.recover_lost(now=run.created_at + timedelta(minutes=61)) == [run]


def test_asking_for_a_run_reads_no_labels_on_the_webs_thread(
    db: None, workers: None, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where a model has learnt the same with the same settings: the worker finds that out."""
    project = labelled_project()
    model = make_model(project, 1)
    config = check_config(settled(project, {}))
    origin = {"config_hash": config_hash(config), "seed": config.seed, "code_version": repeated_runs.code_version()}
    TrainingRun.objects.filter(pk=model.run_id).update(snapshot=snapshots.take(project, now=NOW), **origin)
    monkeypatch.setattr(building, "_steps", None)  # whoever takes a snapshot now fails
    assert runs.request(project, reason="a test").state == RunState.QUEUED


def test_asking_for_a_snapshot_reads_no_labels_on_the_webs_thread(
    as_user: As, db: None, workers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, boss = labelled_project(tasks=12), make_user("boss")
    make_member(project, boss, role="manager")
    monkeypatch.setattr(building, "_steps", None)
    assert as_user(boss).post(f"/api/v1/projects/{project.slug}/snapshots/").status_code == 202


def at_once(work: Callable[[], Any]) -> list[Any]:
    """What two threads get that begin at the same moment."""
    both = Barrier(2, timeout=30)

    def begin(_: int) -> Any:
        try:
            connection.ensure_connection()
            both.wait()
            return work()
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(begin, range(2)))


@pytest.mark.django_db(transaction=True)
def test_two_requests_for_a_snapshot_at_once_are_one(as_user: As, workers: None) -> None:
    project, boss = labelled_project(tasks=12), make_user("boss")
    make_member(project, boss, role="manager")
    address = f"/api/v1/projects/{project.slug}/snapshots/"
    answers = at_once(lambda: as_user(boss).post(address))
    job = SnapshotJob.objects.get()
    assert [(answer.status_code, answer.json()["id"]) for answer in answers] == [(202, job.pk)] * 2
    assert sorted(at_once(snapshot_jobs.build_waiting)) == [0, 1]
    job.refresh_from_db()
    assert job.snapshot == Snapshot.objects.get(project=project)


@pytest.mark.django_db(transaction=True)
def test_two_workers_that_build_for_one_project_make_one_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run and somebody's request, say: the second waits for the first and finds its files."""
    monkeypatch.setattr(building, "PAUSE_SECONDS", 0.01)
    project = labelled_project(tasks=12)
    first, second = at_once(lambda: snapshots.take(project, now=NOW))
    assert first == second == Snapshot.objects.get(project=project)
    assert [child.name for child in first.directory().parent.iterdir()] == [first.content_hash]
    assert not list(first.directory().parent.parent.glob(".building-*"))


# Preferences alone ------------------------------------------------------------------------------------------


def test_preferences_alone_start_a_run_by_policy(db: None, workers: None) -> None:
    preferred_project(retrain_after_labels=12)
    (run,) = runs.start_due(now=NOW)
    assert in_words(run.reason) == "12 new preferences, and the project retrains after 12"


@pytest.fixture
def known(db: None, workers: None) -> Project:
    """Whose last run has seen all of its preferences, and rests no more."""
    project = preferred_project(retrain_after_labels=2, retrain_cooldown_minutes=1)
    taken = snapshots.take(project, now=NOW)
    fields = {"state": RunState.REJECTED, "snapshot": taken, "finished_at": NOW}
    run = TrainingRun.objects.create(project=project, reason="a test", **fields)
    TrainingRun.objects.filter(pk=run.pk).update(created_at=NOW - timedelta(minutes=1))
    return project


SOON = timedelta(minutes=5)


def test_known_preferences_start_none(known: Project) -> None:
    assert runs.start_due(now=NOW + SOON) == []


def test_imported_preferences_are_news_even_of_tasks_that_were_there(known: Project) -> None:
    for number in range(2):
        imported(known, {"prompt": f"Later {number}", "response_1": "C.", "response_2": "D."})
    assert runs.due(known, now=NOW + SOON) == ""
    for number in range(2):
        row = {"prompt": f"Later {number}", "response_1": "C.", "response_2": "D.", "preference_strength": 2}
        imported(known, row)
    assert in_words(runs.due(known, now=NOW + SOON)).startswith("2 new preferences")


def test_a_preference_that_raters_agree_on_anew_is_news(known: Project) -> None:
    for number in range(2):
        prompt = f"Question {number}: what is it?"
        first, second = project_responses(known, prompt)
        given = {"all_preferences_unprocessed": [{"strength": -2, "justification": "so"} for _ in range(3)]}
        row = {"prompt": prompt, "response_1": first, "response_2": second, "preference_strength": -2, **given}
        imported(known, row)
    assert in_words(runs.due(known, now=NOW + SOON)).startswith("2 new preferences")


def project_responses(project: Project, prompt: str) -> list[str]:
    task = project.tasks.get(conversation__0__content=prompt)
    return list(task.responses.order_by("position").values_list("text", flat=True))


def test_hours_count_preferences_too(known: Project) -> None:
    Project.objects.filter(pk=known.pk).update(retrain_after_labels=0, retrain_after_hours=1)
    known.refresh_from_db()
    later = NOW + timedelta(hours=2)
    assert runs.due(known, now=later) == ""
    imported(known, {"prompt": "Later", "response_1": "C.", "response_2": "D.", "preference_strength": 1})
    assert "1 new preferences" in in_words(runs.due(known, now=later))


# Against the gate -------------------------------------------------------------------------------------------


@pytest.fixture
def rejected(project: Project) -> RewardModel:
    model = make_model(project, 2)
    TrainingRun.objects.filter(pk=model.run_id).update(state=RunState.REJECTED, verdict=NO.as_json())
    return model


def test_a_rejected_model_is_promoted_only_after_the_gates_words(
    rejected: RewardModel, cast: Cast, as_user: As
) -> None:
    carol, address = as_user(cast.carol), f"/api/v1/reward-models/{rejected.pk}/promote/"
    answer = carol.post(address)
    assert (answer.status_code, answer.json()["code"]) == (409, "confirmation_needed")
    assert "No evidence that it is better. The mean squared error rises by 0.100" in answer.json()["detail"]
    assert carol.post(address, {"confirm": False}).status_code == 409
    assert carol.post(address, ["confirm"]).status_code == 400
    assert not RewardModel.objects.filter(is_champion=True).exists()
    assert carol.post(address, {"confirm": True}).json()["is_champion"]


def test_the_confirmation_may_stand_in_the_address(rejected: RewardModel, cast: Cast, as_user: As) -> None:
    answer = as_user(cast.carol).post(f"/api/v1/reward-models/{rejected.pk}/promote/?confirm=1")
    assert answer.json()["is_champion"]
    assert AuditEntry.objects.get(action="model.promoted").details["overruled"] == NO.reason


def test_the_way_back_to_a_former_champion_is_one_click(rejected: RewardModel, cast: Cast, as_user: As) -> None:
    RewardModel.objects.filter(pk=rejected.pk).update(promoted_at=NOW)
    make_model(rejected.project, 3, is_champion=True)
    assert as_user(cast.carol).post(f"/api/v1/reward-models/{rejected.pk}/promote/").json()["is_champion"]


@pytest.mark.parametrize("door", ["rest", "page"])
def test_both_doors_start_scoring_at_once(
    door: str, project: Project, cast: Cast, as_user: As, client: Client, workers: None
) -> None:
    make_task(project)
    model = make_model(project, 1)
    if door == "rest":
        as_user(cast.carol).post(f"/api/v1/reward-models/{model.pk}/promote/")
    else:
        client.force_login(cast.carol)
        client.post(f"/projects/talk/models/{model.pk}/promote/")
    assert ScoringLane.objects.filter(scoring_pass__reward_model=model, moved_at__isnull=False).exists()


# What a light worker holds ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_finding_unlikely_annotations_holds_does_not_grow_with_them(db: None) -> None:
    """Two responses of five scores for each annotation: as arrays of all of them they took 650 bytes each."""
    few, many = peak_of_noting(22_000), peak_of_noting(44_000)
    assert few < 25e6
    assert many - few < 2e6


def peak_of_noting(count: int) -> int:
    """Bytes that it takes at most to look through so many annotations."""
    project = make_project(f"of-{count}")
    dice = random.Random(1)
    with connection.cursor() as cursor:
        cursor.execute(_MANY, {"project": project.pk, "user": make_user(f"rater-{count}").pk, "count": count})
        # What other tests have left of statistics is about their few rows: PostgreSQL would plan for those.
        cursor.execute("ANALYZE")
    run = TrainingRun.objects.create(project=project, reason="a test", state=RunState.PROMOTED)
    run.directory().mkdir(parents=True)
    with (run.directory() / "expected.jsonl").open("w") as file:
        for pk in project.tasks.values_list("responses", flat=True).iterator():
            values = ", ".join(f'"{key}": {dice.uniform(0, 4)}' for key in project.attribute_keys())
            file.write(f'{{"id": "{pk}", "scores": {{{values}}}}}\n')
    np.zeros(1)
    tracemalloc.start()
    unlikely_ratings.note(run, now=NOW)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert Task.objects.filter(project=project).count() == count
    return peak


_MANY = """
SET LOCAL session_replication_role = replica;
INSERT INTO annotator_task (project_id, external_id, conversation, metadata, priority, state, slots_wanted, open_slots,
                            content_hash, prompt_hash, created_at)
SELECT %(project)s, 't-' || n, '[]', '{}', 0, 'complete', 1, 0, '', '', now() FROM generate_series(1, %(count)s) AS n;
INSERT INTO annotator_response (task_id, position, external_id, text, model, metadata)
SELECT id, position, '', '', '', '{}' FROM annotator_task, generate_series(0, 1) AS position
WHERE project_id = %(project)s;
INSERT INTO annotator_assignment (task_id, annotator_id, slot, state, response_order, leased_at, lease_expires_at)
SELECT id, %(user)s, 1, 'submitted', '{0,1}', now(), now() FROM annotator_task WHERE project_id = %(project)s;
INSERT INTO annotator_annotation (assignment_id, revision, is_current, origin, justification, guideline_version,
                                  content_hash, submitted_at, project_id, annotator_id)
SELECT id, 1, true, 'person', '', 0, '', now(), %(project)s, annotator_id
FROM annotator_assignment WHERE annotator_id = %(user)s;
INSERT INTO annotator_rating (annotation_id, response_id, scores, checks, unsafe_category)
SELECT a.id, r.id, '{"helpfulness": 3, "correctness": 3, "coherence": 3, "complexity": 2, "verbosity": 2}', '[]', ''
FROM annotator_annotation a JOIN annotator_assignment s ON s.id = a.assignment_id
JOIN annotator_response r ON r.task_id = s.task_id WHERE s.annotator_id = %(user)s;
"""
