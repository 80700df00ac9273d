"""A model judged by a file that somebody sends: over REST, on the page, and whatever happens to the worker."""

import io
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from django.conf import LazySettings, settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from rest_framework.test import APIClient

from annotator.infrastructure import jobs
from annotator.infrastructure.background import heartbeats
from annotator.infrastructure.background.heartbeats import QueueHealth
from annotator.infrastructure.jobs import ATTEMPTS
from annotator.infrastructure.refusals import Refusal
from annotator.models import AuditEntry, Project, Role, User
from rewards.evaluation import evaluation, evaluation_jobs
from rewards.models import Evaluation, EvaluationJob, RewardModel, Snapshot
from rewards.registry import erasure
from tests.annotator.models.test_constraints import make_model
from tests.builders import NOW, make_member, make_project, make_user
from tests.refusals import refusal
from tests.rewards.evaluated import HASH, benchmark_metrics, make_evaluation

pytestmark = pytest.mark.usefixtures("workers")

METRICS = {**benchmark_metrics(0.5), "data": {"sha256": "c0ffee", "format": "RewardBench 2", "rows": 1}}
JOBS = "/api/v1/projects/talk/evaluation-jobs/"
State = EvaluationJob.State


@pytest.fixture
def model(project: Project) -> RewardModel:
    return make_model(project, 1)


def measuring(monkeypatch: pytest.MonkeyPatch, measure: Callable[..., Any] | Exception) -> mock.Mock:
    """Without the process that loads the model."""
    fake = mock.Mock(side_effect=measure)
    monkeypatch.setattr(evaluation, "measured", fake)
    return fake


def sent(model: RewardModel, content: bytes = b"{}\n", **fields: Any) -> EvaluationJob:
    by = User.objects.filter(username="sender").first() or make_user("sender")
    details: dict[str, Any] = {"file_name": "rb2.jsonl", "name": "", "by": by} | fields
    return evaluation_jobs.request(model, io.BytesIO(content), **details)


def upload(client: APIClient, model: int, content: bytes = b"{}\n", **fields: Any) -> Any:
    file = SimpleUploadedFile("rows.jsonl", content)
    return client.post(JOBS, {"model": model, "file": file, **fields}, format="multipart")


def files() -> list[Path]:
    return sorted(path for path in (settings.ARTIFACTS / "evaluations").glob("*/*") if path.is_file())


# The way of a job ------------------------------------------------------------------------------------------


def test_a_job_ends_with_an_evaluation_and_without_its_file(
    carol: APIClient, model: RewardModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = upload(carol, model.pk, b'{"prompt": "?"}\n', name="my rows")
    assert answer.status_code == 202
    job = answer.json()
    assert (job["state"], job["name"], job["file_name"], job["version"]) == ("queued", "my rows", "rows.jsonl", 1)
    assert [path.read_bytes() for path in files()] == [b'{"prompt": "?"}\n']

    def read(_model: RewardModel, data: str, *, folder: Path, beat: Callable[[], None]) -> dict[str, Any]:
        assert folder.is_dir()
        assert Path(data).read_bytes() == b'{"prompt": "?"}\n'
        assert carol.get(answer["Location"]).json()["state"] == "working"
        beat()
        return METRICS

    measuring(monkeypatch, read)
    evaluation_jobs.work(job["id"])
    done = carol.get(answer["Location"]).json()
    assert done["state"] == "done"
    assert done["finished_at"]
    row = carol.get(f"/api/v1/evaluations/{done['evaluation']}/").json()
    assert (row["name"], row["data_hash"], row["model"]) == ("my rows", "c0ffee", model.pk)
    assert files() == []
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {"evaluation.requested", "model.evaluated"} <= actions


def test_what_the_learning_core_refuses_is_the_job_s_error(
    carol: APIClient, model: RewardModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    measuring(monkeypatch, Refusal("rows.jsonl has the columns text, which are of no known format."))
    job = upload(carol, model.pk).json()["id"]
    evaluation_jobs.work(job)
    answer = carol.get(f"/api/v1/evaluation-jobs/{job}/").json()
    assert (answer["state"], answer["evaluation"]) == ("failed", None)
    assert "no known format" in answer["error"]
    assert files() == []


def test_an_error_of_ours_names_no_folder_and_reaches_the_log(
    model: RewardModel, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    measuring(monkeypatch, OSError(f"cannot read {settings.ARTIFACTS}/x/y"))
    job = sent(model)
    with pytest.raises(OSError, match="cannot read"):
        evaluation_jobs.work(job.pk)
    job.refresh_from_db()
    assert job.state == State.FAILED
    assert str(settings.ARTIFACTS) not in job.error


@pytest.mark.slow
@pytest.mark.xdist_group("training")
def test_the_process_that_measures_says_why_it_refuses(model: RewardModel) -> None:
    job = sent(model, json.dumps({"text": "?"}).encode())
    evaluation_jobs.work(job.pk)
    job.refresh_from_db()
    assert job.state == State.FAILED
    assert "no known format" in job.error


@pytest.mark.slow
@pytest.mark.xdist_group("training")
def test_a_removed_job_ends_its_process(model: RewardModel, settings: LazySettings) -> None:
    settings.RUN_HEARTBEAT_SECONDS = 0.05
    job = sent(model)
    with mock.patch.object(evaluation_jobs, "_beat", side_effect=lambda job: _removed(job)) as beat:
        evaluation_jobs.work(job.pk)
    assert beat.called
    assert not EvaluationJob.objects.exists()
    assert not Evaluation.objects.exists()


_beat = evaluation_jobs._beat


def _removed(job: EvaluationJob) -> None:
    evaluation_jobs.remove(EvaluationJob.objects.get(pk=job.pk))
    _beat(job)


# Workers that stop -----------------------------------------------------------------------------------------


def test_a_job_is_done_by_one_worker(model: RewardModel, monkeypatch: pytest.MonkeyPatch) -> None:
    job = sent(model)

    def measure(*_args: object, **_kwargs: object) -> dict[str, Any]:
        evaluation_jobs.work(job.pk)
        return METRICS

    fake = measuring(monkeypatch, measure)
    evaluation_jobs.work(job.pk)
    assert fake.call_count == 1


def test_a_stopped_worker_puts_the_job_back(model: RewardModel, monkeypatch: pytest.MonkeyPatch) -> None:
    job = sent(model)
    stopping = mock.Mock(is_set=lambda: True)
    for module in (heartbeats, jobs):
        monkeypatch.setattr(module, "stopping", stopping)
    measuring(monkeypatch, lambda *_args, beat, **_more: beat())
    evaluation_jobs.work(job.pk)
    job.refresh_from_db()
    assert job.state == State.QUEUED
    assert len(files()) == 1


def test_a_silent_worker_s_job_goes_to_another_and_its_late_result_is_refused(
    model: RewardModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = sent(model)

    def late(*_args: object, **_kwargs: object) -> dict[str, Any]:
        EvaluationJob.objects.update(heartbeat_at=NOW)
        assert evaluation_jobs.recover_lost(now=NOW + timedelta(hours=2)) == 1
        EvaluationJob.objects.update(state=State.WORKING, attempt=2)
        return METRICS

    measuring(monkeypatch, late)
    evaluation_jobs.work(job.pk)
    job.refresh_from_db()
    assert job.state == State.WORKING
    assert not Evaluation.objects.exists()
    assert len(files()) == 1, "the other worker still reads it"


def test_a_file_that_never_arrived_is_said(model: RewardModel) -> None:
    job = sent(model)
    files()[0].unlink()
    for _attempt in range(ATTEMPTS):  # another worker may see it
        assert (job.state, job.error) == (State.QUEUED, "")
        evaluation_jobs.work(job.pk)
        job.refresh_from_db()
    assert job.error == "rb2.jsonl did not arrive. Send it again."


def test_the_sweep_leaves_the_files_of_jobs_that_wait_and_no_others(model: RewardModel) -> None:
    waits, ended, gone = (sent(model) for _ in range(3))
    EvaluationJob.objects.filter(pk=ended.pk).update(state=State.FAILED)
    EvaluationJob.objects.filter(pk=gone.pk).delete()
    erasure.sweep(now=NOW)
    assert [path.parent.name for path in files()] == [str(waits.pk)]


# What is refused -------------------------------------------------------------------------------------------


def test_an_empty_file_leaves_nothing(model: RewardModel) -> None:
    with refusal("empty_file"):
        sent(model, b"")
    assert not EvaluationJob.objects.exists()
    assert files() == []


def test_a_file_s_name_leads_nowhere_else(model: RewardModel) -> None:
    job = sent(model, file_name="../../../etc/pass wd")
    assert job.file_name == "pass_wd"
    assert files() == [job.directory() / "pass_wd"]


def test_an_erased_model_is_not_judged(project: Project, model: RewardModel) -> None:
    snapshot = Snapshot.objects.create(
        project=project, content_hash="c", path="s", manifest={}, train_tasks=1, validation_tasks=1, labels=2
    )
    Snapshot.objects.update(erasing_at=NOW)
    model.run.snapshot = snapshot
    model.run.save()
    with refusal("model_erased"):
        sent(model)


def test_a_project_has_so_many_unfinished_jobs_at_most(model: RewardModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation_jobs, "MOST_WAITING", 1)
    sent(model)
    with refusal("too_many_jobs", match="1 evaluations are under way"):
        sent(model)


def test_with_no_worker_nothing_is_kept(carol: APIClient, model: RewardModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "listening", lambda: {queue: QueueHealth(0, None) for queue in heartbeats.QUEUES})
    answer = upload(carol, model.pk)
    assert (answer.status_code, answer.json()["code"]) == (503, "no_worker")
    assert files() == []


def test_a_form_that_is_not_right_says_what_is_wrong(carol: APIClient, model: RewardModel) -> None:
    other = make_model(make_project("other"), 1)
    assert upload(carol, other.pk).json()["errors"]["model"] == ["The project has no reward model with this id."]
    assert "file" in carol.post(JOBS, {"model": model.pk}, format="multipart").json()["errors"]
    assert carol.post(JOBS, {"model": model.pk}, format="json").status_code == 415


def test_a_file_beyond_the_limit_is_refused(carol: APIClient, model: RewardModel, settings: LazySettings) -> None:
    settings.EVALUATION_MAX_BYTES = 1_000
    assert upload(carol, model.pk, b"x" * 2_000).status_code == 413
    assert not EvaluationJob.objects.exists()


def test_a_manager_deletes_what_somebody_asked_for_and_nothing_of_a_run(
    carol: APIClient, project: Project, model: RewardModel
) -> None:
    asked, own = make_evaluation(model, name="rb2"), make_evaluation(model)
    manifest = {"files": {"validation.jsonl": HASH}}
    Snapshot.objects.create(
        project=project, content_hash="c", path="s", manifest=manifest, train_tasks=1, validation_tasks=1, labels=2
    )
    assert carol.delete(f"/api/v1/evaluations/{asked.pk}/").status_code == 204
    answer = carol.delete(f"/api/v1/evaluations/{own.pk}/")
    assert (answer.status_code, answer.json()["code"]) == (409, "belongs_to_run")
    assert list(Evaluation.objects.all()) == [own]
    assert AuditEntry.objects.filter(action="evaluation.deleted").count() == 1


def test_a_removed_job_takes_its_file_along(
    carol: APIClient, model: RewardModel, django_capture_on_commit_callbacks: Any
) -> None:
    job = sent(model)
    with django_capture_on_commit_callbacks(execute=True):
        assert carol.delete(f"/api/v1/evaluation-jobs/{job.pk}/").status_code == 204
    assert files() == []
    assert not EvaluationJob.objects.exists()


# The page --------------------------------------------------------------------------------------------------


def test_a_manager_sends_a_file_on_the_page_and_sees_the_job(pages: Client, model: RewardModel) -> None:
    file = SimpleUploadedFile("rows.jsonl", b"{}\n")
    answer = pages.post("/projects/talk/evaluation-jobs/", {"model": model.pk, "file": file, "name": ""}, follow=True)
    text = answer.content.decode()
    assert "Version 1 is being judged on rows." in text
    assert 'hx-trigger="every 3s"' in text
    job = EvaluationJob.objects.get()
    assert job.requested_by
    assert "Stop" in text
    pages.post(f"/evaluation-jobs/{job.pk}/remove/")
    assert not EvaluationJob.objects.exists()


def test_the_page_says_what_is_wrong_with_the_form(pages: Client, model: RewardModel) -> None:
    answer = pages.post("/projects/talk/evaluation-jobs/", {"model": model.pk, "name": ""}, follow=True)
    assert "File: This field is required." in answer.content.decode()
    file = SimpleUploadedFile("rows.jsonl", b"")
    answer = pages.post("/projects/talk/evaluation-jobs/", {"model": model.pk, "file": file}, follow=True)
    assert "empty" in answer.content.decode()


def test_the_part_of_the_page_is_read_again_while_a_job_is_under_way(pages: Client, model: RewardModel) -> None:
    job = sent(model)
    assert "hx-get" in pages.get("/projects/talk/evaluation-jobs/").content.decode()
    row = make_evaluation(model, name="rb2")
    EvaluationJob.objects.filter(pk=job.pk).update(state=State.DONE, evaluation=row)
    text = pages.get("/projects/talk/evaluation-jobs/").content.decode()
    assert "hx-get" not in text
    assert f"?of={row.pk}" in text


def test_a_job_says_how_far_it_is(pages: Client, model: RewardModel) -> None:
    job = sent(model)
    EvaluationJob.objects.filter(pk=job.pk).update(state=State.WORKING, attempt=1)
    job.refresh_from_db()
    (job.directory() / "attempt-1").mkdir()
    (job.directory() / "attempt-1" / "progress.jsonl").write_text('{"event": "predict", "done": 250, "total": 1000}\n')
    evaluation_jobs._beat(job)
    text = pages.get("/projects/talk/evaluation-jobs/").content.decode().replace("\N{NO-BREAK SPACE}", " ")
    assert "250 of 1,000 responses (25 %)." in text


def test_the_page_deletes_an_evaluation_that_no_run_made(pages: Client, model: RewardModel) -> None:
    row = make_evaluation(model, name="rb2")
    assert "Delete the evaluation of version 1" in pages.get("/projects/talk/comparison/").content.decode()
    answer = pages.post(f"/evaluations/{row.pk}/delete/", follow=True)
    assert "is deleted." in answer.content.decode()
    assert not Evaluation.objects.exists()


def test_reviewers_see_jobs_without_buttons(project: Project, model: RewardModel, client: Client) -> None:
    sent(model)
    reviewer = make_user("rita")
    make_member(project, reviewer, Role.REVIEWER)
    client.force_login(reviewer)
    text = client.get("/projects/talk/comparison/").content.decode()
    assert "rb2" in text
    assert "Stop" not in text
    assert 'type="file"' not in text
