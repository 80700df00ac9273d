"""The queues of rows: whose turn it is, workers beside each other, and what becomes of a job in each case."""

import errno
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import OperationalError, connection, transaction

from annotator.infrastructure import jobs
from annotator.infrastructure.background import heartbeats
from annotator.infrastructure.db import locks
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.jobs import ATTEMPTS, Ended, FileMissing, JobKind, Postponed, by_turns, run_waiting
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.stopping import stopping
from annotator.models import BackgroundFailure, ImportJob, Project, User
from tests.builders import NOW, make_project
from tests.conftest import Cast

State = ImportJob.State
Work = Callable[[ImportJob], object]
# A second worker is a thread with a connection of its own, which sees what is committed.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "takes_work", lambda: not stopping.is_set())


def asked(project: Project, by: User | None = None, **fields: Any) -> ImportJob:
    fields = {"state": State.WAITING, "file_hash": "0", "created_at": NOW} | fields
    return ImportJob.objects.create(project=project, requested_by=by, **fields)


def kind(work: Work = jobs.finish, **more: Any) -> JobKind[ImportJob]:
    def done(job: ImportJob) -> None:
        work(job)

    return JobKind(
        "test jobs", jobs=lambda: ImportJob.objects.select_related("project"), work=done, lost="Lost.", **more
    )


def again(job: ImportJob) -> ImportJob:
    return ImportJob.objects.get(pk=job.pk)


def elsewhere(act: Callable[[], Any]) -> Any:
    def act_and_hang_up() -> Any:
        try:
            return act()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(act_and_hang_up).result()


# Whose turn it is ------------------------------------------------------------------------------------------


def served(*asks: tuple[User, Project]) -> list[tuple[str, str]]:
    """Who is served in which project, where each job ends before the next one is taken."""
    for by, where in asks:
        asked(where, by)
    order = []
    while job := by_turns(ImportJob.objects.filter(state=State.WAITING)).first():
        order.append((str(job.requested_by), job.project.slug))
        beat = NOW + timedelta(seconds=len(order))
        ImportJob.objects.filter(pk=job.pk).update(state=State.DONE, heartbeat_at=beat, finished_at=beat)
    return order


def test_one_person_s_many_jobs_leave_others_their_turn(project: Project, cast: Cast) -> None:
    two = make_project("two")
    order = served(
        *((cast.carol, where) for where in (project, two, project)), (cast.dave, project), (cast.erin, project)
    )
    assert [by for by, _ in order] == ["carol", "dave", "erin", "carol", "carol"]


def test_one_project_s_many_jobs_leave_the_person_s_others_their_turn(project: Project, cast: Cast) -> None:
    others = [make_project(slug) for slug in ("two", "three")]
    order = served(*((cast.carol, where) for where in (project, project, project, *others)))
    assert [where for _, where in order] == ["talk", "two", "three", "talk", "talk"]


# Workers beside each other ---------------------------------------------------------------------------------


def test_a_small_file_does_not_wait_for_another_project_s_large_one(project: Project, cast: Cast) -> None:
    large, small = asked(project, cast.carol), asked(make_project("two"), cast.carol)

    def work(job: ImportJob) -> None:
        if job == large:
            assert elsewhere(lambda: run_waiting(kind())) == 1
            assert (again(small).state, again(large).state) == (State.DONE, State.WORKING)
        jobs.finish(job)

    assert run_waiting(kind(work)) == 1
    assert again(large).state == State.DONE


def test_a_project_has_one_job_of_a_kind_at_work(project: Project) -> None:
    first, second = asked(project), asked(project)

    def work(job: ImportJob) -> None:
        if job == first:
            assert elsewhere(lambda: run_waiting(kind())) == 0
            assert (again(first).attempt, again(second).state) == (1, State.WAITING)
        jobs.finish(job)

    assert run_waiting(kind(work)) == 2
    assert again(second).state == State.DONE


@pytest.mark.parametrize("places", [1, 2])
def test_an_installation_has_so_many_places(project: Project, settings: LazySettings, places: int) -> None:
    settings.JOBS_AT_ONCE = places
    first, other = asked(project), asked(make_project("two"))

    def work(job: ImportJob) -> None:
        if job == first:
            assert elsewhere(lambda: run_waiting(kind())) == places - 1
        jobs.finish(job)

    run_waiting(kind(work))
    assert (again(first).state, again(other).state) == (State.DONE, State.DONE)


def test_a_worker_keeps_a_thread_for_what_takes_a_moment(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_of_this_process", threading.BoundedSemaphore(1))
    job = asked(project)
    asked(make_project("two"))

    def work(job: ImportJob) -> None:
        jobs.finish(job)
        assert elsewhere(lambda: run_waiting(replace(kind(), name="other jobs"))) == 0

    assert run_waiting(kind(work)) == 2
    assert again(job).attempt == 1


def test_a_job_that_somebody_has_locked_keeps_no_other_waiting(project: Project) -> None:
    locked, other = asked(project), asked(make_project("two"))
    with transaction.atomic():
        ImportJob.objects.select_for_update().get(pk=locked.pk)  # as whoever cancels it, or erases texts
        assert elsewhere(lambda: run_waiting(kind())) == 1
    assert (again(locked).state, again(other).state) == (State.WAITING, State.DONE)


# Workers that are lost -------------------------------------------------------------------------------------


def test_a_job_at_work_whose_lock_is_free_has_lost_its_worker(project: Project) -> None:
    job = asked(project, state=State.WORKING, attempt=1, tries=1, heartbeat_at=database_now())
    assert run_waiting(kind()) == 1
    assert (again(job).state, again(job).attempt, again(job).tries) == (State.DONE, 2, 2)


def test_after_so_many_lost_workers_a_job_has_failed(project: Project) -> None:
    job, other = asked(project, state=State.WORKING, attempt=7, tries=ATTEMPTS), asked(project)
    cleaned: list[ImportJob] = []
    assert run_waiting(kind(clean=cleaned.append)) == 1
    assert (again(job).state, again(job).error, again(job).attempt) == (State.FAILED, "Lost.", 8)
    assert (cleaned, again(other).state) == ([job], State.DONE)


@pytest.mark.parametrize(("silent_for", "is_lost"), [(timedelta(minutes=9), False), (timedelta(minutes=11), True)])
def test_a_worker_that_hangs_loses_its_locks_after_a_while(
    project: Project, silent_for: timedelta, is_lost: bool
) -> None:
    job = asked(project, state=State.WORKING, attempt=1, tries=1, heartbeat_at=database_now() - silent_for)
    holds, goes = threading.Event(), threading.Event()

    def hang() -> None:
        try:
            with locks.session_lock("test jobs", project.pk) as is_ours:
                assert is_ours
                holds.set()
                goes.wait(20)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads:
        hanging = threads.submit(hang)
        holds.wait(20)
        assert run_waiting(kind()) == 0  # the first look ends the worker's connection, the next one finds the lock free
        assert wait_until(lambda: run_waiting(kind()) == 1, seconds=2 if is_lost else 0.2) is is_lost
        goes.set()
        assert isinstance(hanging.exception(), OperationalError) is is_lost
    assert again(job).attempt == (2 if is_lost else 1)


def wait_until(condition: Callable[[], bool], *, seconds: float) -> bool:
    waited = threading.Event()
    return any(condition() or waited.wait(0.05) for _ in range(round(seconds / 0.05)))


def test_an_earlier_worker_writes_nothing_any_more(project: Project) -> None:
    job = asked(project)
    cleaned: list[ImportJob] = []

    def lose(job: ImportJob) -> None:
        ImportJob.objects.filter(pk=job.pk).update(attempt=9, state=State.WAITING)
        with pytest.raises(Ended):
            jobs.write(job, rows_done=7)
        jobs.finish(job)

    assert run_waiting(kind(lose, clean=cleaned.append), most=1) == 1
    assert (again(job).state, again(job).attempt, again(job).rows_done) == (State.WAITING, 9, 0)
    assert cleaned == [job], "it looks whether the row still needs the files"


def test_silence_alone_decides_where_workers_outlast_the_database(project: Project) -> None:
    patient = replace(kind(), silent_after=timedelta(minutes=1))
    now = database_now()
    silent, busy, given_up = (
        asked(project, state=State.WORKING, attempt=1, tries=tries, heartbeat_at=now - timedelta(minutes=minutes))
        for minutes, tries in ((2, 1), (0, 1), (2, ATTEMPTS))
    )
    assert run_waiting(patient) == 0
    jobs.put_back_lost(patient, now=now)
    assert [again(job).state for job in (silent, busy, given_up)] == [State.WAITING, State.WORKING, State.FAILED]
    assert run_waiting(patient) == 1
    assert (again(silent).state, again(silent).tries) == (State.DONE, 2)


# What can be repeated ---------------------------------------------------------------------------------------


def finish_left(work: Callable[[ImportJob], int]) -> int:
    left = ImportJob.objects.filter(state=State.WAITING).select_related("project")
    return jobs.finish_left("test jobs", left, work)


def end(job: ImportJob) -> int:
    return ImportJob.objects.filter(pk=job.pk).update(state=State.DONE, finished_at=NOW)


def test_what_is_left_goes_on_project_by_project_beside_each_other(project: Project, settings: LazySettings) -> None:
    settings.JOBS_AT_ONCE = 2
    mine, mine_too, other = asked(project), asked(project), asked(make_project("two"))
    BackgroundFailure.objects.create(task="test jobs", project=project, first_at=NOW, last_at=NOW)

    def work(job: ImportJob) -> int:
        if job == mine:
            assert elsewhere(lambda: finish_left(end)) == 1
            assert [again(job).state for job in (mine_too, other)] == [State.WAITING, State.DONE]
            assert BackgroundFailure.objects.exists(), "nobody has seen this project succeed"
        return end(job)

    assert finish_left(work) == 2
    assert not BackgroundFailure.objects.exists()


def test_nobody_without_a_place_touches_what_is_left(project: Project, settings: LazySettings) -> None:
    settings.JOBS_AT_ONCE = 1
    asked(project)
    asked(make_project("two"))
    seen = []

    def work(job: ImportJob) -> int:
        seen.append(elsewhere(lambda: finish_left(end)))
        return end(job)

    assert (finish_left(work), seen) == (2, [0, 0])


def test_what_cannot_be_finished_in_one_project_is_written_down_and_stops_no_other(project: Project) -> None:
    gone = make_project("gone")
    Project.objects.filter(pk=gone.pk).update(archived_at=NOW, deleted_at=NOW)
    broken, later, fine = asked(gone), asked(gone), asked(project)

    def work(job: ImportJob) -> int:
        if job == broken:
            raise ValueError("no luck")
        return end(job)

    assert (finish_left(work), again(fine).state, again(later).state) == (1, State.DONE, State.DONE)
    assert BackgroundFailure.objects.get().project == gone, "a deletion that fails is seen as well"


# What becomes of a job -------------------------------------------------------------------------------------


def raising(error: BaseException) -> Work:
    def work(_: ImportJob) -> None:
        raise error

    return work


class Unwanted(Refusal):
    code = "unwanted"


@pytest.mark.parametrize(
    ("error", "said", "code"),
    [
        (Unwanted("Not this one."), "Not this one.", "unwanted"),
        (OSError(errno.ENOSPC, "full"), "The disk is full. Try again when there is room.", "disk_full"),
        (ValueError("no\nDETAIL: a row"), "ValueError: no", "error"),
    ],
)
def test_a_failure_is_on_the_row_and_ours_reach_the_log(
    project: Project, error: Exception, said: str, code: str
) -> None:
    job = asked(project)
    cleaned: list[ImportJob] = []
    failing = kind(raising(error), clean=cleaned.append, fail=lambda code: {"file_name": code})
    if code == "error":
        with pytest.raises(ValueError, match="no"):
            run_waiting(failing)
    else:
        assert run_waiting(failing) == 1
    assert (again(job).state, again(job).error, again(job).file_name) == (State.FAILED, said, code)
    assert cleaned == [job]


@pytest.mark.parametrize(("error", "tries"), [(Postponed(), 0), (FileMissing(), 1)])
def test_what_is_not_the_job_s_fault_costs_it_no_attempt(project: Project, error: Postponed, tries: int) -> None:
    job = asked(project)
    for attempt in range(1, ATTEMPTS):
        assert run_waiting(kind(raising(error))) == 0
        assert (again(job).state, again(job).attempt, again(job).tries) == (State.WAITING, attempt, attempt * tries)
    assert run_waiting(kind()) == 1


def test_a_job_stays_at_work_while_the_database_is_away(project: Project) -> None:
    job = asked(project)
    with pytest.raises(OperationalError):
        run_waiting(kind(raising(OperationalError("the server closed the connection"))))
    assert again(job).state == State.WORKING
    assert run_waiting(kind()) == 1


def test_a_worker_that_may_take_no_work_takes_none(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "takes_work", lambda: False)
    job = asked(project)
    assert (run_waiting(kind()), again(job).attempt) == (0, 0)
