"""An uploaded file on its way: kept, checked, imported, cancelled, and resumed after its worker was killed."""

import gzip
import io
import os
import signal
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings, settings
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from annotator.infrastructure.background import heartbeats, messages, redis_client
from annotator.infrastructure.background.heartbeats import QueueHealth
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.jobs import ATTEMPTS
from annotator.infrastructure.stopping import stopping
from annotator.infrastructure.storage import artifacts, disk_space
from annotator.infrastructure.storage.disk_space import DiskNearlyFull
from annotator.managing import archive
from annotator.models import AuditEntry, Import, ImportJob, Project, Rubric, Task, User
from annotator.stages.importing import batches, import_rows, jobs, samples, withdrawal
from annotator.stages.importing.jobs import uploads, work
from annotator.stages.importing.mapped_rows import MissingColumn
from annotator.stages.importing.mappings import mapping_of_text, read_mapping
from tests.builders import ATTRIBUTES, NOW, json_lines, label_row, make_member, make_project, make_user, task_row
from tests.celery_workers import wait_for, worker
from tests.refusals import refusal
from tests.servers import ROOT
from tests.shared_data import needs_shared, shared

State = ImportJob.State
PAIR = read_mapping({"prompt": "question", "responses": [{"text": "answer_1"}, {"text": "answer_2"}]})


@pytest.fixture(autouse=True)
def _ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a worker listened to each queue."""
    health = {queue: QueueHealth(1, 0.0) for queue in heartbeats.QUEUES}
    monkeypatch.setattr(heartbeats, "listening", lambda: health)


@pytest.fixture
def carol(project: Project) -> User:
    user = make_user("carol")
    make_member(project, user, role="manager")
    return user


def lines(*rows: Any) -> bytes:
    return json_lines(*rows).getvalue()


def tasks(count: int) -> bytes:
    return lines(*(task_row(f"t-{number:04}") for number in range(count)))


def uploaded(project: Project, content: bytes, *, name: str = "rows.jsonl") -> ImportJob:
    by = User.objects.filter(username="carol").first() or make_user("carol")
    return jobs.upload(project, io.BytesIO(content).read, file_name=name, by=by, now=NOW)


def started(project: Project, content: bytes, **options: Any) -> ImportJob:
    return jobs.start(uploaded(project, content), **({"dry_run": False, "mapping": None} | options))


def worked(job: ImportJob) -> ImportJob:
    jobs.run_waiting()
    job.refresh_from_db()
    return job


def counts(job: ImportJob) -> tuple[int, int, int]:
    return job.created, job.existing, job.rejected


def folders() -> list[Path]:
    return list((settings.ARTIFACTS / "imports").glob("*"))


# The way of a job ------------------------------------------------------------------------------------------


def test_a_job_ends_with_its_tasks_and_without_its_file(project: Project, carol: User) -> None:
    content = lines(task_row("a"), task_row("b"), {"bad": 1})
    job = worked(started(project, content))
    assert (job.state, counts(job), job.error) == (State.DONE, (2, 0, 1), "")
    assert (job.file_bytes, job.bytes_read) == (len(content), len(content))
    row = Import.objects.get()
    assert (row, row.by, row.file_name, row.rejected) == (job.import_row, carol, "rows.jsonl", 1)
    assert (row.file_hash, row.file_bytes) == (job.file_hash, len(content))
    assert folders() == []


@pytest.mark.parametrize(
    ("rows", "have_answers"),
    [
        ([task_row(f"t-{number}") for number in range(20)], False),
        ([label_row(f"{number}?", "Yes.") for number in range(20)], True),
    ],
)
def test_postgresql_looks_at_the_tables_that_a_job_has_filled(
    project: Project, monkeypatch: pytest.MonkeyPatch, rows: list[Any], have_answers: bool
) -> None:
    monkeypatch.setattr(batches, "COUNTED_FROM", 20)
    job = started(project, lines(*rows))
    with CaptureQueriesContext(connection) as queries:
        assert counts(worked(job)) == (20, 0, 0)
    (look,) = [query["sql"] for query in queries.captured_queries if query["sql"].startswith("ANALYZE")]
    assert '"annotator_task"' in look
    assert ('"annotator_label"' in look) is have_answers


@pytest.mark.parametrize("dry_run", [False, True])
def test_the_name_of_who_rated_goes_with_the_file(project: Project, dry_run: bool) -> None:
    row = {"id": "t-1", "label_annotations": {key: {"scale_3": "3"} for key in ATTRIBUTES}}
    mapping = read_mapping({"rated_by": "ann", "fitting_only": True})
    job = worked(started(project, lines(task_row("t-1", responses=1), row), mapping=mapping, dry_run=dry_run))
    jobs.sweep(now=database_now())
    job.refresh_from_db()
    assert job.mapping == {"fitting_only": True} | ({"rated_by": "ann"} if dry_run else {})
    jobs.sweep(now=database_now() + 2 * ImportJob.FILE_KEPT)
    job.refresh_from_db()
    assert job.mapping == {"fitting_only": True}


def test_each_step_is_in_the_audit(project: Project) -> None:
    worked(started(project, tasks(1)))
    actions = AuditEntry.objects.order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["import.uploaded", "import.started", "import.begun", "tasks.imported"]


def test_a_file_that_makes_no_task_leaves_no_import(project: Project) -> None:
    job = worked(started(project, b"{}\n"))
    assert (job.state, counts(job), job.import_row) == (State.DONE, (0, 0, 1), None)
    assert not Import.objects.exists()


def test_a_check_writes_nothing_and_can_be_imported_afterwards(project: Project) -> None:
    job = worked(started(project, lines(task_row("a"), {"bad": 1}), dry_run=True))
    assert (job.state, counts(job), Task.objects.count(), Import.objects.count()) == (State.DONE, (1, 0, 1), 0, 0)
    again = worked(jobs.start(job, dry_run=False, mapping=None))
    assert (counts(again), again.dry_run, Task.objects.count(), again.errors.count()) == ((1, 0, 1), False, 1, 1)
    assert folders() == []


def test_errors_are_listed_by_line_with_their_field(project: Project) -> None:
    rows = [task_row("a"), {**task_row("b"), "priority": "high"}, {**task_row("c"), "messages": []}]
    job = worked(started(project, lines(*rows)))
    listed = [(error.line, error.field) for error in job.errors.order_by("pk")]
    assert listed == [(2, "priority"), (3, "messages")]


def test_only_the_first_errors_are_kept_and_all_are_counted(project: Project, settings: LazySettings) -> None:
    settings.IMPORT_ERRORS_REPORTED = 3
    job = worked(started(project, b"{}\n" * 1200))
    assert (job.rejected, job.errors.count()) == (1200, 3)


def test_columns_of_another_name_are_mapped(project: Project) -> None:
    content = b"question,answer_1,answer_2\nName a prime.,7,8\n"
    job = worked(started(project, content, mapping=PAIR))
    assert (job.state, counts(job)) == (State.DONE, (1, 0, 0))


def test_a_mapping_of_a_missing_column_is_refused_before_anything_starts(project: Project) -> None:
    job = uploaded(project, b"q,answer_1,answer_2\nName a prime.,7,8\n")
    with pytest.raises(MissingColumn, match="'question'"):
        jobs.start(job, dry_run=False, mapping=PAIR)
    job.refresh_from_db()
    assert job.state == State.UPLOADED


def test_jobs_are_done_in_the_order_of_their_upload(project: Project) -> None:
    first, second = started(project, lines(task_row("a"))), started(project, lines(task_row("a")))
    jobs.run_waiting()
    first.refresh_from_db()
    second.refresh_from_db()
    assert (counts(first), counts(second)) == ((1, 0, 0), (0, 1, 0))


# What is refused -------------------------------------------------------------------------------------------


def test_an_empty_file_leaves_nothing(project: Project) -> None:
    with refusal("empty_file"):
        uploaded(project, b"")
    assert (ImportJob.objects.count(), folders()) == (0, [])


def test_a_full_disk_leaves_nothing(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*, extra: int = 0) -> None:
        if extra:
            raise DiskNearlyFull("The disk is nearly full.")

    monkeypatch.setattr(disk_space, "require_room", full)
    with pytest.raises(DiskNearlyFull):
        uploaded(project, tasks(3))
    assert (ImportJob.objects.count(), folders()) == (0, [])


def test_a_disk_that_fills_up_fails_the_job_and_keeps_what_is_in(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH", 1)
    job = started(project, tasks(3))
    calls: list[int] = []

    def full(*, extra: int = 0) -> None:
        calls.append(1)
        if len(calls) == 2:
            raise DiskNearlyFull("The disk is nearly full.")

    monkeypatch.setattr(disk_space, "require_room", full)
    worked(job)
    assert (job.state, counts(job), job.error) == (State.FAILED, (1, 0, 0), "The disk is nearly full.")
    assert (Import.objects.get().created, folders()) == (1, [])


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("a\n".encode("utf-16"), "the file is UTF-16"),
        (b"PK\x03\x04 an archive", "it is a zip archive but no Excel workbook"),
        (gzip.compress(b"x" * 100, mtime=0)[:12], "gzip file is damaged"),
        (b"PAR1 and no more", "the file cannot be read"),
        (gzip.compress(b'{"a": "' + b" " * (40 << 20) + b'"}', mtime=0), "expands more than 200-fold"),
    ],
    ids=["utf-16", "archive", "damaged", "parquet", "bomb"],
)
def test_an_unreadable_file_fails_at_once_with_the_reason(project: Project, content: bytes, why: str) -> None:
    job = uploaded(project, content)
    assert (job.state, folders()) == (State.FAILED, [])
    assert why in job.error
    with refusal("not_startable"):
        jobs.start(job, dry_run=False, mapping=None)


def test_a_file_that_holds_too_much_fails_in_the_worker(project: Project, settings: LazySettings) -> None:
    job = started(project, tasks(2))
    settings.IMPORT_MAX_FILE_BYTES = 10
    worked(job)
    assert (job.state, folders()) == (State.FAILED, [])
    assert "holds more than 10 bytes" in job.error


def test_without_a_worker_nothing_starts(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    job = uploaded(project, tasks(1))
    monkeypatch.setattr(heartbeats, "listening", lambda: {queue: QueueHealth(0, None) for queue in heartbeats.QUEUES})
    with refusal("no_worker"):
        jobs.start(job, dry_run=False, mapping=None)
    job.refresh_from_db()
    assert job.state == State.UPLOADED


def test_a_project_has_so_many_files_at_most(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MOST_WITH_FILE", 1)
    uploaded(project, tasks(1))
    with refusal("too_many_files"):
        uploaded(project, tasks(1))


def test_an_archived_project_takes_no_file(project: Project) -> None:
    job, waiting = uploaded(project, tasks(1)), started(project, tasks(1))
    archive.archive(project, now=NOW)
    with refusal("archived"):
        uploaded(project, tasks(1))
    with refusal("archived"):
        jobs.start(job, dry_run=False, mapping=None)
    assert worked(waiting).state == State.FAILED


def test_a_job_is_started_once(project: Project) -> None:
    job = uploaded(project, tasks(1))
    jobs.start(job, dry_run=False, mapping=None)
    with refusal("not_startable", match="Somebody else"):
        jobs.start(job, dry_run=False, mapping=None)  # as another page that was loaded before
    job.refresh_from_db()
    with refusal("not_startable", match="under way"):
        jobs.start(job, dry_run=False, mapping=None)


def test_a_files_name_leads_nowhere_else(project: Project) -> None:
    job = uploaded(project, tasks(1), name="../../etc/pass\0wd")
    assert job.file_name == "passwd"
    assert {path.name for path in job.directory().iterdir()} == {"file", "sample.json"}


# Cancelled -------------------------------------------------------------------------------------------------


def test_an_upload_is_discarded(project: Project, django_capture_on_commit_callbacks: Any) -> None:
    job = uploaded(project, tasks(1))
    with django_capture_on_commit_callbacks(execute=True):
        assert jobs.cancel(job).state == State.CANCELLED
    assert folders() == []
    with refusal("already_ended"):
        jobs.cancel(job)


def test_a_job_that_is_cancelled_stops_and_what_is_in_can_be_taken_back(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH", 1)
    job = started(project, tasks(5))
    seen = stopped_after(monkeypatch, 2, lambda: jobs.cancel(job))
    worked(job)
    assert (len(seen), job.state, counts(job), Task.objects.count()) == (3, State.CANCELLED, (2, 0, 0), 2)
    row = Import.objects.get()
    assert (row.created, row.layouts, folders()) == (2, ["tasks"], [])
    assert AuditEntry.objects.filter(action="tasks.imported").count() == 1
    assert withdrawal.take_back(row, by=None, now=NOW).removed == 2


def test_a_check_that_has_ended_is_discarded(project: Project, django_capture_on_commit_callbacks: Any) -> None:
    job = worked(started(project, tasks(1), dry_run=True))
    with django_capture_on_commit_callbacks(execute=True):
        jobs.cancel(job)
    assert folders() == []


def test_an_import_taken_back_while_it_runs_fails_with_that_sentence(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH", 1)
    job = started(project, tasks(5))
    stopped_after(monkeypatch, 2, lambda: withdrawal.take_back(Import.objects.get(), by=None, now=NOW))
    worked(job)
    assert (job.state, Task.objects.count()) == (State.FAILED, 0)
    assert "taken back while it was running" in job.error


def stopped_after(monkeypatch: pytest.MonkeyPatch, batch: int, happens: Any) -> list[int]:
    """Lets something happen before the batch after so many."""
    seen: list[int] = []

    def before_batch(*, extra: int = 0) -> None:
        seen.append(1)
        if len(seen) == batch + 1:
            happens()

    monkeypatch.setattr(disk_space, "require_room", before_batch)
    return seen


# A worker that is lost -------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process is gone: nothing that stands in an `except` or a `finally` of ours may be relied on."""


def killed_after(monkeypatch: pytest.MonkeyPatch, job: ImportJob, batch: int) -> None:
    """Leaves what a killed worker leaves: the batches that were committed, and a row that says it is working."""

    def die() -> None:
        raise Killed

    with monkeypatch.context() as patch:
        stopped_after(patch, batch, die)
        with pytest.raises(Killed):
            jobs.run_waiting()
    job.refresh_from_db()
    assert job.state == State.WORKING


@pytest.mark.parametrize("batch", [1, 2, 4])
def test_a_lost_workers_job_goes_on_behind_its_last_batch(
    project: Project, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(batches, "BATCH", 3)
    rows = [task_row(f"t-{number}") for number in range(10)]
    # A repetition in the file, and bad rows on both sides of every border.
    content = lines(*rows[:5], {"bad": 1}, rows[0], *rows[5:], {"bad": 2})
    job = started(project, content)
    killed_after(monkeypatch, job, batch)
    assert job.rows_done == 3 * batch
    worked(job)
    assert (job.state, counts(job), Task.objects.count()) == (State.DONE, (10, 1, 2), 10)
    assert [error.line for error in job.errors.order_by("pk")] == [6, 13]
    row = Import.objects.get()
    assert (row.created, row.existing, row.rejected, row.tasks.count()) == (10, 1, 2, 10)
    assert AuditEntry.objects.filter(action="tasks.imported").count() == 1


def test_pairs_are_not_torn_apart_by_a_lost_worker(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that waits for its pair is read again, though rows behind it are finished with."""
    monkeypatch.setattr(batches, "BATCH", 1)
    first, second = label_row("p", "a"), label_row("p", "b")
    job = started(project, lines(first, {"bad": 1}, second, label_row("q", "c"), label_row("q", "d")))
    killed_after(monkeypatch, job, 1)
    worked(job)
    assert counts(job) == (2, 0, 1)
    assert [task.responses.count() for task in Task.objects.all()] == [2, 2]


def test_a_check_that_lost_its_worker_counts_right(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH", 3)
    job = started(project, tasks(10), dry_run=True)
    killed_after(monkeypatch, job, 2)
    assert (counts(worked(job)), Task.objects.count()) == ((10, 0, 0), 0)


def test_a_worker_that_lost_its_job_writes_no_further_batch(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH", 1)
    job = started(project, tasks(4))
    # As if PostgreSQL had taken this worker for dead, and another had claimed the job.
    stopped_after(monkeypatch, 1, lambda: ImportJob.objects.filter(pk=job.pk).update(attempt=99))
    worked(job)  # which notices, lets the job go, and claims it as the other would
    assert (job.attempt, counts(job), Task.objects.count()) == (100, (4, 0, 0), 4)


def test_after_the_last_attempt_a_lost_job_has_failed(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH", 1)
    job = started(project, tasks(9))
    for _ in range(ATTEMPTS):
        killed_after(monkeypatch, job, 1)
    worked(job)
    assert (job.state, counts(job), Import.objects.get().created, folders()) == (State.FAILED, (3, 0, 0), 3, [])
    assert "lost in each of 3 attempts" in job.error


def test_a_worker_that_is_asked_to_end_puts_the_job_back(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH", 1)
    job = started(project, tasks(4))
    stopped_after(monkeypatch, 2, stopping.set)
    try:
        worked(job)
    finally:
        stopping.clear()
    assert (job.state, job.tries, counts(job)) == (State.WAITING, 0, (2, 0, 0))
    assert not AuditEntry.objects.filter(action="tasks.imported").exists()
    assert counts(worked(job)) == (4, 0, 0)


def test_a_job_waits_while_the_database_is_away(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH", 1)
    job = started(project, tasks(3))

    def away() -> None:
        raise OperationalError("the server closed the connection")

    with monkeypatch.context() as patch:
        stopped_after(patch, 1, away)
        with pytest.raises(OperationalError):
            jobs.run_waiting()
    assert (counts(worked(job)), job.state) == ((3, 0, 0), State.DONE)


def test_changed_rules_stop_an_import_that_was_interrupted(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH", 1)
    job = started(project, tasks(3))
    killed_after(monkeypatch, job, 1)
    Project.objects.filter(pk=project.pk).update(allow_ties=True)
    worked(job)
    assert (job.state, Task.objects.count()) == (State.FAILED, 1)
    assert "other rules" in job.error


def test_an_error_of_ours_is_on_the_row_and_reaches_the_log(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    job = started(project, tasks(1))
    monkeypatch.setattr(work, "write_batches", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        jobs.run_waiting()
    job.refresh_from_db()
    assert (job.state, job.error, folders()) == (State.FAILED, "ZeroDivisionError: division by zero", [])


def test_a_deleted_project_takes_its_jobs_along(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH", 1)
    started(project, tasks(3))
    stopped_after(monkeypatch, 1, lambda: ImportJob.objects.all().delete())
    jobs.run_waiting()
    assert folders() == []


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_killed_worker_s_import_is_finished_by_the_next(
    settings: LazySettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    settings.ARTIFACTS = tmp_path / "artifacts"
    settings.ARTIFACTS.mkdir()
    project = make_project()
    redis_client.connection().delete("light")
    health = {queue: QueueHealth(1, 0.0) for queue in heartbeats.QUEUES}
    monkeypatch.setattr(heartbeats, "listening", lambda: health)
    monkeypatch.setattr(artifacts, "require_ours", lambda: None)
    job = uploaded(project, tasks(30_000))
    with worker("light", tmp_path, IMPORT_MAX_ROWS="100000") as process:
        job = jobs.start(job, dry_run=False, mapping=None)

        def is_in_the_middle() -> bool:
            job.refresh_from_db()
            return job.rows_done >= 1000

        wait_for(is_in_the_middle, what="the first batches")
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    job.refresh_from_db()
    assert (job.state, 0 < job.rows_done < 30_000) == (State.WORKING, True)
    with worker("light", tmp_path):
        messages.send("annotator.tasks.run_imports")
        wait_for(lambda: ImportJob.objects.get().state == State.DONE, seconds=120, what="the rest of the import")
    job.refresh_from_db()
    assert (counts(job), Task.objects.count(), job.tries) == ((30_000, 0, 0), 30_000, 2)
    row = Import.objects.get()
    assert (row.created, row.existing, row.tasks.count()) == (30_000, 0, 30_000)
    assert not list((settings.ARTIFACTS / "imports").glob("*"))


# Samples ---------------------------------------------------------------------------------------------------


def parquet(*rows: dict[str, Any]) -> bytes:
    import pyarrow
    import pyarrow.parquet

    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), file)
    return file.getvalue()


def shown(project: Project, content: bytes, mapping: Any = None) -> samples.SamplePreview:
    return samples.preview(project, jobs.sample_of(uploaded(project, content)), mapping)


@pytest.mark.parametrize("packed", [bytes, gzip.compress])
def test_the_first_rows_are_shown_as_tasks(project: Project, packed: Any) -> None:
    preview = shown(project, packed(lines({"bad": 1}, *(task_row(f"t-{number}") for number in range(9)))))
    assert (preview.layout, [task.external_id for task in preview.tasks]) == ("tasks", [f"t-{n}" for n in range(5)])
    assert [row.line for row in preview.refused] == [1]


def test_parquet_is_shown_without_reading_all_of_it(project: Project) -> None:
    row = {"question": "Name a prime.", "answer_1": "7", "answer_2": "8"}
    sample = jobs.sample_of(uploaded(project, parquet(*[row] * 1000)))
    assert (sample.columns, len(sample.rows)) == (list(row), samples.MOST_ROWS)
    assert len(samples.preview(project, sample, PAIR).tasks) == 5


def test_gzipped_parquet_says_why_it_is_not_shown(project: Project) -> None:
    sample = jobs.sample_of(uploaded(project, gzip.compress(parquet({"a": 1}))))
    assert (list(sample.rows), "gzipped Parquet" in sample.note) == ([], True)


def test_a_preview_changes_with_the_mapping(project: Project) -> None:
    content = b"question,reply 1,reply 2\nName a prime.,7,8\n"
    assert shown(project, content).layout == ""
    replies = read_mapping({"prompt": "question", "responses": [{"text": "reply 1"}, {"text": "reply 2"}]})
    task = shown(project, content, replies).tasks[0]
    assert ([message["content"] for message in task.messages], task.responses[1].text) == (["Name a prime."], "8")


def test_a_sample_ends_where_the_head_ends(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "HEAD_BYTES", 1000)
    row_bytes = len(tasks(1))
    preview = shown(project, tasks(100))
    assert (preview.refused, len(preview.tasks)) == ([], 1000 // row_bytes)
    # What is cut off there is not said to be damaged.
    assert shown(project, gzip.compress(os.urandom(5000).hex().encode())).refused == []


def test_long_texts_are_cut_in_the_preview_alone(project: Project) -> None:
    task = shown(project, lines(task_row("t", prompt="x" * 50_000))).tasks[0]
    assert len(task.messages[0]["content"]) == samples.SHOWN + 4


def test_nested_rows_end_no_preview(project: Project) -> None:
    deep = b'{"a": ' + b"[" * 900 + b"]" * 900 + b"}\n"
    assert shown(project, deep * 2 + tasks(1)).layout == "tasks"


# Leftovers -------------------------------------------------------------------------------------------------


def test_the_sweep_leaves_the_files_that_are_needed_and_no_others(project: Project) -> None:
    kept, checked = uploaded(project, tasks(1)), worked(started(project, tasks(1), dry_run=True))
    (settings.ARTIFACTS / "imports" / "999999999").mkdir()
    assert jobs.sweep(now=NOW + timedelta(hours=1)) == 1
    assert {folder.name for folder in folders()} == {str(kept.pk), str(checked.pk)}


def test_files_that_nobody_imports_go_after_a_day(project: Project) -> None:
    kept, checked = uploaded(project, tasks(1)), worked(started(project, tasks(1), dry_run=True))
    later = checked.finished_at + timedelta(days=2) if checked.finished_at else NOW
    assert jobs.sweep(now=max(later, NOW + timedelta(days=2))) == 2
    kept.refresh_from_db()
    assert (kept.state, folders()) == (State.CANCELLED, [])
    assert "Nobody started the import" in kept.error


def test_a_row_whose_upload_was_cut_off_goes(project: Project) -> None:
    ImportJob.objects.create(project=project, file_name="x", created_at=NOW)
    jobs.sweep(now=NOW + timedelta(days=2))
    assert not ImportJob.objects.exists()


def test_an_import_that_was_cut_off_before_its_first_task_leaves_no_row(project: Project) -> None:
    job = started(project, tasks(1))
    row = Import.objects.create(project=project, made_at=NOW)
    ImportJob.objects.filter(pk=job.pk).update(state=State.CANCELLED, finished_at=NOW, import_row=row)
    jobs.sweep(now=NOW)
    assert not Import.objects.exists()


def test_a_job_that_ended_is_forgotten_after_a_month(project: Project) -> None:
    job = worked(started(project, tasks(1)))
    assert job.finished_at is not None
    jobs.sweep(now=job.finished_at + timedelta(days=31))
    assert not ImportJob.objects.exists()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=needs_shared(name))
        for name in (
            *("oasst_tasks.jsonl", "rewardbench_rows.jsonl", "llm_judge_ratings.jsonl", "span_feedback.jsonl"),
            *("hh_pairs_train.jsonl.gz", "hh_pairs_dev.jsonl.gz", "summeval_expert_ratings.csv.gz", "pii_texts.jsonl"),
        )
    ],
)
def test_a_job_comes_to_what_a_call_comes_to(db: None, name: str) -> None:
    content, mapping = shared(name).read_bytes(), MAPPINGS.get(name)
    if name.startswith("summeval"):  # its rows of 120 items: all of them take twenty seconds
        content = gzip.compress(b"".join(gzip.decompress(content).splitlines(keepends=True)[: 1 + 120 * 4 * 3]))
    by_job, by_call = (_project_for(name, slug, content) for slug in ("job", "call"))
    job = worked(started(by_job, content, mapping=mapping))
    called = import_rows(by_call, io.BytesIO(content), now=NOW, mapping=mapping)
    assert (*counts(job), job.ratings_added, job.notes) == (
        called.created,
        called.existing,
        called.rejected_total,
        called.ratings_added,
        called.noted.as_json(),
    )
    assert job.error == ""
    assert job.created or job.ratings_added


MAPPINGS = {"pii_texts.jsonl": mapping_of_text((ROOT / "examples/mappings/texts.json").read_bytes())}
SUMMEVAL = ("coherence", "consistency", "fluency", "relevance")


def _project_for(name: str, slug: str, content: bytes) -> Project:
    """A project for the file; the scores of SummEval are of tasks that have to be there."""
    if not name.startswith("summeval"):
        return make_project(slug)
    rubric = Rubric.objects.create(key=slug, name=slug)
    for place, key in enumerate(SUMMEVAL):
        rubric.attributes.create(key=key, name=key, description=key, levels=["x"] * 5, position=place)
    project = Project.objects.create(slug=slug, name=slug, rubric=rubric, spread_attribute="coherence")
    names = dict.fromkeys(line.partition(",")[0] for line in gzip.decompress(content).decode().splitlines()[1:])
    rows = json_lines(*(task_row(one, prompt=one, responses=1) for one in names))
    assert import_rows(project, rows, now=NOW).rejected == []
    return project
