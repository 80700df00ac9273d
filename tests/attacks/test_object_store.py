"""Hosts without a common folder: each has its own, one object store has all, and whichever dies nothing is lost."""

import io
import os
import signal
import tarfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone

from annotator.infrastructure.background import heartbeats, messages, redis_client
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.storage import artifacts, store
from annotator.models import ExportJob, ImportJob, Release, StoredFile, Task, User
from annotator.outputs.exporting import export_jobs
from annotator.outputs.exporting.filters import EVERYTHING
from annotator.outputs.releases import release_jobs
from annotator.outputs.releases.particulars import Particulars
from annotator.stages.importing import jobs as import_jobs
from rewards import scoring
from rewards.models import RewardModel, RunState, Score, TrainingRun
from rewards.runs import runs
from tests.builders import json_lines, make_member, make_user, task_row
from tests.celery_workers import wait_for, worker
from tests.object_store import ObjectStore, object_store
from tests.rewards.labelled import labelled_project

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("training")]
CONFIG = {
    "epochs": 4,
    "max_steps": 24,
    "batch_tokens": 512,
    "checkpoint_steps": 2,
    "threads": 1,
    "cross_fit_minutes": 0,
}


@pytest.fixture(scope="module")
def s3() -> Iterator[ObjectStore]:
    with object_store() as running:
        yield running


@pytest.fixture
def address(s3: ObjectStore, settings: LazySettings, tmp_path: Path) -> Iterator[str]:
    """The bucket; this process is the web, on a host of its own."""
    settings.ARTIFACTS_STORE = s3.bucket(f"artifacts-{uuid4().hex}")
    settings.ARTIFACTS = tmp_path / "web" / "artifacts"
    artifacts.mark_new()
    redis_client.connection().delete(heartbeats.KEY, *heartbeats.QUEUES)
    yield settings.ARTIFACTS_STORE
    redis_client.connection().delete(heartbeats.KEY, *heartbeats.QUEUES)


@pytest.fixture
def carol(address: str) -> User:
    return make_user("carol")


def host(tmp_path: Path, name: str) -> Path:
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)
    return folder


def files_under(folder: Path) -> list[str]:
    artifacts_here = folder / "artifacts"
    found = (path.relative_to(artifacts_here) for path in artifacts_here.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in found if not path.parts[0].startswith("."))


def ended(job: ImportJob | ExportJob | Release) -> str:
    state = type(job)._default_manager.values_list("state", flat=True).get(pk=job.pk)
    return str(state) if state not in (*job.UNDER_WAY, "uploaded") else ""


def test_files_go_between_the_web_and_the_workers(
    client: Client, address: str, carol: User, tmp_path: Path, s3: ObjectStore
) -> None:
    project = labelled_project(tasks=3)
    make_member(project, carol, role="manager")
    client.force_login(carol)
    one = host(tmp_path, "one")
    with worker("light", one, ARTIFACTS_URL=address, WORKER_HEARTBEAT_SECONDS="1") as light:
        file = json_lines(task_row("sent", prompt="From afar?"))
        job = import_jobs.request(
            project, file.read, file_name="a.jsonl", by=carol, now=database_now(), dry_run=False, mapping=None
        )
        assert files_under(tmp_path / "web") == [], "the store has it"
        wait_for(lambda: ended(job), what="the import")
        assert (ended(job), Task.objects.filter(external_id="sent").count()) == ("done", 1)
        made = export_jobs.request(
            project, layout="helpsteer2", format="jsonl", filters=EVERYTHING, by=carol, now=database_now()
        )
        release = release_jobs.request(project, Particulars(title="First"), by=carol, now=database_now())
        wait_for(lambda: ended(made) and ended(release), what="export and release")
        assert (ended(made), ended(release)) == ("done", "done")
        answer = client.get(f"/api/v1/projects/labelled/export-jobs/{made.pk}/file/")
        content = b"".join(answer.streaming_content)  # type: ignore[attr-defined]
        assert len(content.splitlines()) == made.__class__.objects.get(pk=made.pk).rows_done
        part = client.get(f"/api/v1/projects/labelled/export-jobs/{made.pk}/file/", headers={"range": "bytes=5-24"})
        assert b"".join(part.streaming_content) == content[5:25]  # type: ignore[attr-defined]
        archive = client.get("/api/v1/projects/labelled/releases/1/archive/")
        packed = io.BytesIO(b"".join(archive.streaming_content))  # type: ignore[attr-defined]
        with tarfile.open(fileobj=packed) as tar:
            assert "release-1/README.md" in tar.getnames()
        assert files_under(tmp_path / "web") == []
        assert any(name.startswith("releases/") for name in files_under(one))
        release_jobs.delete(release)
        export_jobs.delete(made)
        wait_for(lambda: files_under(one) == [], seconds=30, what="the copies of the worker's host to go")
        assert StoredFile.objects.count() == store.erase_gone() > 0
        assert StoredFile.objects.count() == 0
        assert light.poll() is None


def test_a_run_goes_on_elsewhere_when_its_host_is_gone(
    client: Client, address: str, carol: User, tmp_path: Path, settings: LazySettings
) -> None:
    project = labelled_project(tasks=16, training_config=CONFIG)
    make_member(project, carol, role="manager")
    variables = {"ARTIFACTS_URL": address, "RUN_HEARTBEAT_SECONDS": "0.2"}
    with worker("train", host(tmp_path, "one"), **variables) as first:
        run = runs.request(project, reason="a test")
        wait_for(lambda: _is_stored(run), seconds=120, what="a checkpoint in the store")
        os.killpg(first.pid, signal.SIGKILL)
    run.refresh_from_db()
    assert run.state == RunState.TRAINING
    with worker("train", host(tmp_path, "other"), **variables):
        assert runs.recover_lost(now=timezone.now() + timedelta(minutes=5))
        wait_for(lambda: TrainingRun.objects.get(pk=run.pk).finished_at, seconds=200, what="the run's end")
    run.refresh_from_db()
    assert run.state in (RunState.PROMOTED, RunState.REJECTED), run.error
    assert '"resumed"' in (tmp_path / "other" / "artifacts" / "runs" / str(run.pk) / "progress.jsonl").read_text()
    store.erase_gone()
    assert not StoredFile.objects.filter(path__contains="/checkpoint/").exists()
    model = RewardModel.objects.get()
    RewardModel.objects.update(is_champion=True)
    with worker("score", host(tmp_path, "third"), ARTIFACTS_URL=address):
        scoring.start(model, now=timezone.now())
        wait_for(lambda: Score.objects.exists(), seconds=200, what="scores by a third host")
    client.force_login(carol)
    answer = client.get(f"/api/v1/reward-models/{model.pk}/archive/")
    packed = io.BytesIO(b"".join(answer.streaming_content))  # type: ignore[attr-defined]
    with tarfile.open(fileobj=packed) as tar:
        assert any(name.endswith("model/reward_model.json") for name in tar.getnames())


def _is_stored(run: TrainingRun) -> bool:
    return StoredFile.objects.filter(path__startswith=f"runs/{run.pk}/checkpoint/").exists()


def test_while_the_store_is_away_work_waits(
    client: Client, address: str, carol: User, tmp_path: Path, s3: ObjectStore
) -> None:
    project = labelled_project(tasks=3)
    make_member(project, carol, role="manager")
    with worker("light", host(tmp_path, "one"), ARTIFACTS_URL=address, WORKER_HEARTBEAT_SECONDS="1"):
        with s3.away():
            wait_for(lambda: [one.unfit for one in heartbeats.workers()] == ["artifacts"], what="it to be unfit")
            health = client.get("/api/v1/health/ready/")
            assert (health.status_code, health.json()["artifacts"]) == (503, False)
            client.force_login(carol)
            answer = client.post(
                "/api/v1/projects/labelled/export-jobs/",
                {"layout": "helpsteer2", "format": "jsonl"},
                "application/json",
            )
            assert (answer.status_code, "does not answer" in answer.json()["detail"]) == (503, True)
        wait_for(lambda: [one.unfit for one in heartbeats.workers()] == [None], what="it to be fit again")
        made = export_jobs.request(
            project, layout="helpsteer2", format="jsonl", filters=EVERYTHING, by=carol, now=database_now()
        )
        messages.send("annotator.tasks.run_exports")
        wait_for(lambda: ended(made) == "done", what="the export")
