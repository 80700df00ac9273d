"""Jobs that meet a worker which does not see the artifacts: each goes back, and is done by the next worker."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.db.models import Model

from annotator.infrastructure import jobs as background_jobs
from annotator.infrastructure.background import heartbeats, messages
from annotator.infrastructure.background.heartbeats import QueueHealth
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.storage import artifacts, store
from annotator.infrastructure.storage.object_store import StoreAway
from annotator.models import ImportJob, Project, User
from annotator.outputs.exporting import export_jobs
from annotator.outputs.exporting.filters import EVERYTHING
from annotator.outputs.releases import folder as release_folder
from annotator.outputs.releases import release_jobs
from annotator.outputs.releases.particulars import Particulars
from annotator.stages.importing import jobs as import_jobs
from annotator.stages.importing.jobs import work as import_work
from rewards import tasks
from rewards.evaluation import evaluation, evaluation_jobs
from rewards.models import RewardModel, ScoringJob, TrainingRun
from rewards.runs import training
from rewards.scoring import pass_lanes, scoring_jobs
from rewards.snapshots import building, snapshot_jobs
from tests.builders import json_lines, make_member, make_user, task_row
from tests.rewards.labelled import labelled_project
from tests.rewards.scored import FakeScorer, make_model

Work = Callable[[Any], object]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a worker listened to each queue, and had time enough to stop."""
    health = {queue: QueueHealth(1, 0.0) for queue in heartbeats.QUEUES}
    monkeypatch.setattr(heartbeats, "listening", lambda: health)
    monkeypatch.setattr(heartbeats, "YIELD_SECONDS", 0.0)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[int]]]:
    """The messages, as Redis would hold them."""
    noted: list[tuple[str, list[int]]] = []
    monkeypatch.setattr(messages, "send", lambda task, ids=(), **_: noted.append((task, list(ids))))
    return noted


@pytest.fixture
def project(transactional_db: None) -> Project:
    artifacts.mark_new()
    return labelled_project(tasks=12)


@pytest.fixture
def carol(project: Project) -> User:
    user = make_user("carol")
    make_member(project, user, role="manager")
    return user


@pytest.fixture
def leave(settings: LazySettings, tmp_path: Path) -> Callable[[], Callable[[], None]]:
    """Takes this worker to a folder of its own, and returns how it comes back."""

    def away() -> Callable[[], None]:
        shared = settings.ARTIFACTS
        settings.ARTIFACTS = tmp_path / "elsewhere"

        def back() -> None:
            settings.ARTIFACTS = shared

        return back

    return away


def import_job(project: Project, by: User) -> Model:
    read = io.BytesIO(json_lines(task_row("new-1")).getvalue()).read
    return import_jobs.request(
        project, read, file_name="rows.jsonl", by=by, now=database_now(), dry_run=False, mapping=None
    )


def export_job(project: Project, by: User) -> Model:
    return export_jobs.request(
        project, layout="helpsteer2", format="jsonl", filters=EVERYTHING, by=by, now=database_now()
    )


def release(project: Project, by: User) -> Model:
    return release_jobs.request(project, Particulars(), by=by, now=database_now())


def snapshot(project: Project, by: User) -> Model:
    return snapshot_jobs.request(project, by=by)


def run(project: Project, by: User) -> Model:
    return TrainingRun.objects.create(project=project, reason="a test")


def evaluation_job(project: Project, by: User) -> Model:
    model = make_model(project)
    return evaluation_jobs.request(model, io.BytesIO(b"{}\n"), file_name="rb2.jsonl", name="", by=by)


JOBS: dict[str, tuple[Callable[[Project, User], Model], Work, tuple[Any, str]]] = {
    "import": (import_job, lambda _: import_jobs.run_waiting(), (import_work, "write_batches")),
    "export": (export_job, lambda _: export_jobs.run_waiting(), (export_jobs, "content")),
    "release": (release, lambda _: release_jobs.run_waiting(), (release_folder, "write")),
    "snapshot": (snapshot, lambda _: snapshot_jobs.build_waiting(), (building, "_steps")),
    "run": (run, lambda job: tasks.train(job.pk), (training, "carry_out")),
    "evaluation": (evaluation_job, lambda job: evaluation_jobs.work(job.pk), (evaluation, "measured")),
}
WAITING = {"waiting", "queued"}
HANDED_ON = {"run": "rewards.tasks.train", "evaluation": "rewards.tasks.evaluate"}


def state(job: Any) -> tuple[str, str]:
    job.refresh_from_db()
    return job.state, job.error


@pytest.mark.parametrize("kind", JOBS)
def test_a_job_is_not_begun_by_a_worker_that_sees_another_folder(
    kind: str, project: Project, carol: User, leave: Any, sent: list[Any]
) -> None:
    make, work, _ = JOBS[kind]
    job = make(project, carol)
    attempt, sent[:] = job.attempt, []  # type: ignore[attr-defined]
    back = leave()
    work(job)
    assert state(job)[0] in WAITING
    assert job.attempt == attempt, "it has cost the job nothing"  # type: ignore[attr-defined]
    assert sent == ([(HANDED_ON[kind], [job.pk])] if kind in HANDED_ON else [])
    back()


@pytest.mark.parametrize("kind", JOBS)
def test_a_job_whose_worker_loses_the_folder_goes_back_and_is_done_by_the_next(
    kind: str, project: Project, carol: User, leave: Any, sent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    make, work, (module, function) = JOBS[kind]
    job, comes_back = make(project, carol), []

    def lose(*_: Any, **__: Any) -> None:
        comes_back.append(leave())
        raise FileNotFoundError(2, "No such file or directory")

    with monkeypatch.context() as losing:
        losing.setattr(module, function, lose)
        work(job)
    said, error = state(job)
    assert (said in WAITING or said == "building", said) == (True, said)
    assert getattr(job, "tries", 0) == 0
    assert "it does not see the installation's artifacts" in error or kind != "run"
    [back] = comes_back
    back()
    if kind in HANDED_ON:
        assert sent[-1] == (HANDED_ON[kind], [job.pk])
        return  # what a run and an evaluation do then is tested where they are
    work(job)
    assert state(job) == ("done", "")


def test_the_file_of_an_import_may_arrive_late(project: Project, carol: User) -> None:
    job = import_job(project, carol)
    assert isinstance(job, ImportJob)
    file = job.directory() / "file"
    late = file.rename(file.with_name("late"))
    assert import_jobs.run_waiting() == 0
    assert state(job) == ("waiting", "")
    late.rename(file)
    assert (import_jobs.run_waiting(), state(job)) == (1, ("done", ""))


def test_the_file_of_an_import_that_never_arrives_is_said(project: Project, carol: User) -> None:
    job = import_job(project, carol)
    assert isinstance(job, ImportJob)
    (job.directory() / "file").unlink()
    ended = [import_jobs.run_waiting() for _ in range(background_jobs.ATTEMPTS)]
    assert ended == [0, 0, 1]
    assert state(job) == ("failed", "The file is not where this worker looks for it. Upload it again.")


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch, leave: Any) -> list[Callable[[], None]]:
    """A worker that finds no model: its folder is another one."""
    comes_back: list[Callable[[], None]] = []

    def lose(model: RewardModel) -> None:
        comes_back.append(leave())
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(scoring_jobs, "scorer_of", lose)
    monkeypatch.setattr(pass_lanes, "scorer_of", lose)
    return comes_back


def test_a_request_for_scores_is_handed_on(project: Project, carol: User, lost: list[Any], sent: list[Any]) -> None:
    items = [{"conversation": [{"role": "user", "content": "Why?"}], "response": "So."}]
    job = ScoringJob.objects.create(reward_model=make_model(project), requested_by=carol, items=items)
    tasks.score_job(job.pk)
    assert (state(job), sent) == (("queued", ""), [("rewards.tasks.score_job", [job.pk])])


def test_a_lane_is_handed_on_with_its_chunk(
    project: Project, lost: list[Any], sent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model(project, is_champion=True)
    pass_lanes.wake(model, now=database_now())
    ((task, turn),) = sent
    assert tasks.score_chunk(*turn) == 0
    assert [name for name, _ in sent] == [task, task]
    lost[0]()
    monkeypatch.setattr(pass_lanes, "scorer_of", lambda _: FakeScorer())
    assert tasks.score_chunk(*sent[-1][1]) > 0
    assert model.scoring_pass.error == ""


def test_a_store_that_refuses_one_job_is_tried_as_often_as_a_lost_worker(
    project: Project, carol: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker is fit, as it sees the installation's mark: the fault may be the job's."""

    def refused(*_: object, **__: object) -> None:
        raise StoreAway("The object store of the artifacts does not answer.")

    monkeypatch.setattr(store, "put", refused)
    job = export_jobs.request(
        project, layout="annotations", format="jsonl", filters=EVERYTHING, by=carol, now=database_now()
    )
    seen = []
    for _ in range(background_jobs.ATTEMPTS):
        export_jobs.run_waiting()
        job.refresh_from_db()
        seen.append(job.state)
    assert seen == ["waiting", "waiting", "failed"]
    assert "does not answer" in job.error
