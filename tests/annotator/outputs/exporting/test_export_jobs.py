"""Exports that the worker writes to a file: rows, kills, what is withdrawn, and downloads in parts."""

import hashlib
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from rest_framework.test import APIClient

from annotator.infrastructure import jobs as engine
from annotator.infrastructure.background import heartbeats
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.storage import disk_space
from annotator.infrastructure.storage.disk_space import DiskNearlyFull
from annotator.models import AuditEntry, ExportJob, Membership, Project, Role, Task, User
from annotator.outputs.exporting import export_jobs
from annotator.outputs.exporting.export_rows import ForManagersOnly, UnknownExport, export
from annotator.outputs.exporting.filters import EVERYTHING, Filters
from tests.builders import make_member, make_project, make_task, rate
from tests.conftest import Cast
from tests.refusals import refusal

State = ExportJob.State
# What a worker's second thread writes is seen by the first one, and the other way round, only once it is committed.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def light_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "require", lambda queue: None)


@pytest.fixture
def rated(project: Project, cast: Cast) -> Task:
    task = make_task(project, "t-1")
    for user in cast.annotators:
        rate(project, user, [1, 3])
    return task


def wanted(project: Project, by: User, layout: str = "annotations", format: str = "jsonl", **more: Any) -> ExportJob:
    more.setdefault("filters", EVERYTHING)
    return export_jobs.request(project, layout=layout, format=format, by=by, now=database_now(), **more)


def again(job: ExportJob) -> ExportJob:
    return ExportJob.objects.select_related("project", "requested_by").get(pk=job.pk)


def test_the_worker_writes_what_the_download_would_send(project: Project, cast: Cast, rated: Task) -> None:
    job = wanted(project, cast.carol, gzip=True)
    assert (job.state, export_jobs.run_waiting()) == (State.WAITING, 1)
    job = again(job)
    expected = b"".join(export(project, layout="annotations", format="jsonl", gzip=True, by=cast.carol))
    assert job.file().read_bytes() == expected
    assert (job.state, job.bytes_done, job.rows_done) == (State.DONE, len(expected), 6)
    assert job.sha256 == hashlib.sha256(expected).hexdigest()
    assert job.rows_expected == 6


@pytest.mark.usefixtures("rated")
@pytest.mark.parametrize(("layout", "format"), [("helpsteer2", "zip"), ("wide", "csv"), ("dpo", "parquet")])
def test_every_format_is_written(project: Project, cast: Cast, layout: str, format: str) -> None:
    job = wanted(project, cast.carol, layout, format)
    export_jobs.run_waiting()
    job = again(job)
    assert (job.state, job.error) == (State.DONE, "")
    assert job.file().stat().st_size == job.bytes_done > 0


def test_filters_and_fields_are_kept_with_the_row(project: Project, cast: Cast, rated: Task) -> None:
    since = database_now() + timedelta(days=1)
    job = wanted(project, cast.carol, filters=Filters(since=since, state="open"), fields=["task"])
    assert job.filters == {"since": since.isoformat(), "state": "open"}
    export_jobs.run_waiting()
    assert (again(job).rows_done, again(job).bytes_done) == (0, 0)
    other = wanted(project, cast.carol, fields=["task", "annotator"])
    export_jobs.run_waiting()
    assert again(other).file().read_text().startswith('{"task":"t-1","annotator":')


def test_a_request_is_refused_as_a_download_is(project: Project, cast: Cast) -> None:
    with pytest.raises(UnknownExport):
        wanted(project, cast.carol, "poem")
    reviewer = Membership.objects.get(project=project, user=cast.alice)
    Membership.objects.filter(pk=reviewer.pk).update(role=Role.REVIEWER)
    with pytest.raises(ForManagersOnly):
        wanted(project, cast.alice, "scores")


def test_a_person_has_so_many_files_and_no_more(project: Project, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_jobs, "MOST_WITH_FILE", 2)
    first = wanted(project, cast.carol)
    wanted(project, cast.carol)
    with refusal("too_many_files", match="You have 2 files"):
        wanted(project, cast.carol)
    export_jobs.delete(first)
    wanted(project, cast.carol)


def test_whoever_lost_the_role_gets_no_file(project: Project, cast: Cast, rated: Task) -> None:
    early, late = wanted(project, cast.carol), wanted(project, cast.carol)
    Membership.objects.filter(project=project, user=cast.carol).delete()
    assert export_jobs.run_waiting() == 2
    assert {again(early).state, again(late).state} == {State.FAILED}
    assert "may no longer read" in again(early).error


def test_a_lost_worker_s_job_is_written_again(project: Project, cast: Cast, rated: Task) -> None:
    job = wanted(project, cast.carol)
    ExportJob.objects.filter(pk=job.pk).update(state=State.WORKING, attempt=1, tries=1, rows_done=3)
    job.directory().mkdir(parents=True)
    job.file().write_bytes(b"half")
    assert export_jobs.run_waiting() == 1
    assert (again(job).state, again(job).rows_done, again(job).tries) == (State.DONE, 6, 2)
    assert job.file().read_bytes().count(b"\n") == 6


def at_the_first_row(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Does something elsewhere once a row is read, and waits until the job has had time to notice."""
    count, done = engine.Pulse.count, threading.Event()

    def act_and_hang_up() -> None:
        act()
        connection.close()

    def act_once(pulse: Any) -> None:
        count(pulse)
        if not done.is_set():
            done.set()
            other = threading.Thread(target=act_and_hang_up)
            other.start()
            other.join()
            time.sleep(0.2)

    monkeypatch.setattr(engine, "BEAT_SECONDS", 0.02)
    monkeypatch.setattr(engine.Pulse, "count", act_once)


def test_a_worker_that_ends_puts_the_job_down(
    project: Project, cast: Cast, rated: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, stopping = wanted(project, cast.carol), threading.Event()
    for module in (heartbeats, engine):
        monkeypatch.setattr(module, "stopping", stopping)
    at_the_first_row(monkeypatch, stopping.set)
    export_jobs.run_waiting()
    assert (again(job).state, again(job).tries) == (State.WAITING, 0)
    stopping.clear()
    export_jobs.run_waiting()
    assert (again(job).state, again(job).rows_done) == (State.DONE, 6)


def test_a_full_disk_ends_the_job_with_the_reason(
    project: Project, cast: Cast, rated: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = wanted(project, cast.carol)

    def full(**_: Any) -> None:
        raise DiskNearlyFull("The disk is nearly full.")

    monkeypatch.setattr(disk_space, "require_room", full)
    export_jobs.run_waiting()
    assert (again(job).state, again(job).error) == (State.FAILED, "The disk is nearly full.")
    assert not job.directory().exists()


def test_a_job_deleted_under_the_worker_leaves_nothing(
    project: Project, cast: Cast, rated: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = wanted(project, cast.carol)
    at_the_first_row(monkeypatch, lambda: export_jobs.delete(job))
    assert export_jobs.run_waiting() == 1
    assert not ExportJob.objects.exists()
    assert not job.directory().exists()


def test_a_disk_that_fills_up_meanwhile_ends_the_job(
    project: Project, cast: Cast, rated: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = wanted(project, cast.carol)

    def fill(**_: Any) -> None:
        raise DiskNearlyFull("The disk is nearly full.")

    at_the_first_row(monkeypatch, lambda: monkeypatch.setattr(disk_space, "require_room", fill))
    export_jobs.run_waiting()
    assert (again(job).state, again(job).error) == (State.FAILED, "The disk is nearly full.")
    assert not job.directory().exists()


def test_another_project_s_file_is_written_meanwhile(
    project: Project, cast: Cast, rated: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_project("other")
    make_member(other, cast.carol, role=Role.MANAGER)
    jobs_of_both = [wanted(project, cast.carol), wanted(other, cast.carol)]
    ended: list[int] = []
    at_the_first_row(monkeypatch, lambda: ended.append(export_jobs.run_waiting()))
    assert (export_jobs.run_waiting(), ended) == (1, [1])
    assert {again(job).state for job in jobs_of_both} == {State.DONE}


def test_the_row_says_how_far_the_file_is(
    project: Project, cast: Cast, rated: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = wanted(project, cast.carol)
    seen: list[ExportJob] = []

    def look() -> None:
        time.sleep(0.2)
        seen.append(again(job))

    at_the_first_row(monkeypatch, look)
    export_jobs.run_waiting()
    (halfway,) = seen
    assert (halfway.state, halfway.rows_done, halfway.rows_expected) == (State.WORKING, 1, 6)
    assert halfway.percent() == 16


def test_erased_texts_are_in_no_file(project: Project, cast: Cast, rated: Task) -> None:
    written, waiting = wanted(project, cast.carol), None
    export_jobs.run_waiting()
    waiting = wanted(project, cast.carol)
    ExportJob.objects.texts_have_gone(project.pk)
    assert again(written).state == State.WITHDRAWN
    with refusal("no_file", match="A text was erased"):
        export_jobs.file_of(again(written))
    export_jobs.sweep(now=database_now())
    assert not written.directory().exists()
    export_jobs.run_waiting()
    assert again(waiting).state == State.DONE


def test_a_text_that_goes_while_the_file_is_written_starts_it_again(
    project: Project, cast: Cast, rated: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = wanted(project, cast.carol)
    at_the_first_row(monkeypatch, lambda: ExportJob.objects.texts_have_gone(project.pk))
    assert export_jobs.run_waiting() == 2
    job = again(job)
    assert (job.state, job.rows_done) == (State.DONE, 6)
    assert job.sha256 == hashlib.sha256(job.file().read_bytes()).hexdigest()


def test_old_files_go_and_rows_follow(project: Project, cast: Cast, rated: Task) -> None:
    job = wanted(project, cast.carol)
    export_jobs.run_waiting()
    now = database_now()
    assert export_jobs.sweep(now=now) == 0
    assert export_jobs.sweep(now=now + ExportJob.FILE_KEPT + timedelta(minutes=1)) == 1
    assert (again(job).state, job.directory().exists()) == (State.EXPIRED, False)
    with refusal("no_file", match="7 days"):
        export_jobs.file_of(again(job))
    export_jobs.sweep(now=now + ExportJob.KEPT + timedelta(minutes=1))
    assert not ExportJob.objects.exists()


# Over REST -------------------------------------------------------------------------------------------------


ADDRESS = "/api/v1/projects/talk/export-jobs/"


def fetched(client: APIClient | Client, address: str, **headers: str) -> tuple[Any, bytes]:
    """The answer, closed as a server closes it, and its content."""
    answer: Any = client.get(address, headers={name.replace("_", "-"): value for name, value in headers.items()})
    content = b"".join(answer) if answer.streaming else answer.content
    answer.close()
    return answer, content


def file_over_rest(client: APIClient, **body: Any) -> tuple[str, bytes]:
    answer = client.post(ADDRESS, {"layout": "annotations", **body}, format="json")
    assert answer.status_code == 202, answer.content
    export_jobs.run_waiting()
    file = f"{answer['Location']}file/"
    return file, fetched(client, file)[1]


@pytest.mark.usefixtures("rated")
def test_a_file_over_rest(carol: APIClient) -> None:
    file, content = file_over_rest(carol, fields="task,annotator", until="2999-01-01")
    (row,) = carol.get(ADDRESS).json()["results"]
    assert (row["state"], row["rows_done"], row["bytes_done"]) == ("done", 6, len(content))
    assert row["sha256"] == hashlib.sha256(content).hexdigest()
    assert row["filters"] == {"until": "2999-01-02T00:00:00+00:00"}, "the day itself is part of it"
    answer, _ = fetched(carol, file)
    assert answer["Content-Length"] == str(len(content))
    assert answer["ETag"] == f'"{row["sha256"]}"'
    assert answer["Content-Disposition"] == 'attachment; filename="talk-annotations.jsonl"'
    assert carol.delete(file.removesuffix("file/")).status_code == 204
    assert carol.get(file).status_code == 404
    actions = AuditEntry.objects.filter(action__startswith="labels.").order_by("pk").values_list("action", flat=True)
    assert sorted(set(actions)) == ["labels.exported", "labels.file_deleted", "labels.file_requested"]


@pytest.mark.usefixtures("rated")
@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [
        ("bytes=0-9", 0, 9),
        ("bytes=10-", 10, -1),
        ("bytes=-7", -7, -1),
        ("bytes=0-999999", 0, -1),
        ("bytes=-9999999", 0, -1),
    ],
)
def test_a_part_of_a_file(carol: APIClient, asked: str, first: int, last: int) -> None:
    file, content = file_over_rest(carol)
    first, last = first % len(content), last % len(content)
    answer, part = fetched(carol, file, Range=asked)
    assert (answer.status_code, part) == (206, content[first : last + 1])
    assert answer["Content-Range"] == f"bytes {first}-{last}/{len(content)}"
    assert answer["Content-Length"] == str(last + 1 - first)


@pytest.mark.usefixtures("rated")
def test_the_last_byte_alone_and_what_lies_behind_it(carol: APIClient) -> None:
    file, content = file_over_rest(carol)
    answer, part = fetched(carol, file, Range=f"bytes={len(content) - 1}-")
    assert (answer.status_code, part) == (206, b"\n")
    behind, _ = fetched(carol, file, Range=f"bytes={len(content)}-")
    assert (behind.status_code, behind["Content-Range"]) == (416, f"bytes */{len(content)}")


@pytest.mark.usefixtures("rated")
@pytest.mark.parametrize(
    "asked", ["bytes=5-2", "bytes=0-1,4-5", "lines=1-2", "bytes=-", "bytes=x-", "bytes=" + 40 * "9"]
)
def test_a_range_without_sense_brings_the_whole_file(carol: APIClient, asked: str) -> None:
    file, content = file_over_rest(carol)
    answer, whole = fetched(carol, file, Range=asked)
    assert (answer.status_code, whole) == (200, content)


@pytest.mark.usefixtures("rated")
def test_a_part_never_continues_another_file(carol: APIClient) -> None:
    file, content = file_over_rest(carol)
    tag = fetched(carol, file)[0]["ETag"]
    assert fetched(carol, file, Range="bytes=5-", If_Range=tag)[1] == content[5:]
    answer, whole = fetched(carol, file, Range="bytes=5-", If_Range='"other"')
    assert (answer.status_code, whole) == (200, content)


@pytest.mark.usefixtures("rated")
def test_a_file_that_is_not_written_yet(carol: APIClient) -> None:
    answer = carol.post(ADDRESS, {}, format="json")
    early = carol.get(f"{answer['Location']}file/")
    assert (early.status_code, early.json()["code"]) == (409, "no_file")


def test_one_s_files_are_one_s_own(project: Project, cast: Cast, carol: APIClient, rated: Task) -> None:
    file, _ = file_over_rest(carol)
    other = APIClient()
    boss = User.objects.create_superuser("root", password="x")
    other.force_authenticate(boss)
    assert other.get(file).status_code == 404
    assert other.get(ADDRESS).json()["results"] == []
    stranger = APIClient()
    stranger.force_authenticate(cast.alice)
    assert stranger.get(file).status_code == 403


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"layout": "poem"}, "layout"),
        ({"format": "doc"}, "format"),
        ({"since": "soon"}, "since"),
        ({"fields": "x"}, ""),
    ],
)
@pytest.mark.usefixtures("rated")
def test_what_cannot_be_written_is_refused_at_once(carol: APIClient, body: dict[str, str], field: str) -> None:
    answer = carol.post(ADDRESS, body, format="json")
    assert answer.status_code == 400
    assert not field or field in answer.json()["errors"]
    assert not ExportJob.objects.exists()


# On the page -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("rated")
def test_a_file_on_the_page(project: Project, cast: Cast) -> None:
    client = Client()
    client.force_login(cast.carol)
    page = "/projects/talk/data/export/"
    sent = client.post(f"{page}request/", {"layout": "wide", "format": "csv", "only": "task,annotator"})
    assert sent.status_code == 302
    assert "layout=wide" in sent["Location"]
    assert "hx-trigger" in client.get(f"{page}files/").content.decode()
    export_jobs.run_waiting()
    job = ExportJob.objects.get()
    shown = client.get(page).content.decode()
    assert job.sha256 in shown
    assert "hx-trigger" not in shown
    _, content = fetched(client, f"{page}files/{job.pk}/")
    assert content.decode("utf-8-sig").startswith("task,annotator")
    client.post(f"{page}files/{job.pk}/delete/")
    assert client.get(f"{page}files/{job.pk}/").status_code == 404
