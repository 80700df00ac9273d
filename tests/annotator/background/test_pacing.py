"""Work that nobody waits for gives way to imports and to everything at ordinary priority."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection

from annotator.agreement import refresh_all
from annotator.background import pacing
from annotator.db import locks
from annotator.db.clock import database_now
from annotator.models import ImportJob, Project, StaleAgreement, StaleWords
from annotator.search.words import take_words
from tests.builders import make_task

LINE = "cpu  {user} {nice} 0 {idle} 0 0 0 0 0 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n"


@pytest.fixture(autouse=True)
def processors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the kernel says of the processors: they have done nothing yet."""
    file = tmp_path / "stat"
    file.write_text(LINE.format(user=0, nice=0, idle=0))
    monkeypatch.setattr(pacing, "PROCESSORS", file)
    return file


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long this thread has rested; what other tests have left running sleeps as ever."""
    made: list[float] = []
    sleep, own = time.sleep, threading.get_ident()

    def rest(seconds: float) -> None:
        if threading.get_ident() == own:
            made.append(seconds)
        else:
            sleep(seconds)

    monkeypatch.setattr(time, "sleep", rest)
    return made


def slices(*results: int) -> Callable[[], int]:
    return iter([*results, 0]).__next__


@pytest.mark.django_db
def test_slices_are_done_until_nothing_is_left_without_rests_on_an_idle_machine(rests: list[float]) -> None:
    assert pacing.in_slices(slices(3, 2, 4)) == 9
    assert rests == []


def importing(project: Project, *, signed_before: timedelta) -> None:
    now = database_now()
    ImportJob.objects.create(
        project=project,
        file_name="tasks.jsonl",
        file_hash="a",
        state=ImportJob.State.WORKING,
        created_at=now,
        heartbeat_at=now - signed_before,
    )


def test_each_slice_is_followed_by_a_rest_while_a_file_is_imported(project: Project, rests: list[float]) -> None:
    importing(project, signed_before=timedelta(seconds=2))
    began = time.monotonic()
    assert pacing.in_slices(slices(1, 1)) == 2
    assert len(rests) == 2
    # So many times as long as the slices, which took no longer than the whole.
    assert 0 < sum(rests) <= pacing.REST_BESIDE_IMPORT * (time.monotonic() - began)


def test_an_import_whose_worker_was_killed_is_no_reason_to_rest(project: Project, rests: list[float]) -> None:
    importing(project, signed_before=timedelta(minutes=1))
    pacing.in_slices(slices(1))
    assert rests == []


@pytest.mark.django_db(transaction=True)
def test_work_that_somebody_is_at_is_left_to_them_and_keeps_no_thread(project: Project) -> None:
    StaleAgreement.objects.create(project=project, task_id=make_task(project).pk)
    done: list[int] = []

    def work() -> None:
        done.extend([take_words(), refresh_all(now=database_now())])
        connection.close()

    with locks.session_lock("words"), locks.session_lock("agreement in slices", project.pk):
        other = threading.Thread(target=work)
        other.start()
        other.join()
        assert done == [0, 0]
        assert (StaleWords.objects.count(), StaleAgreement.objects.count()) == (1, 1)
    work()
    assert (StaleWords.objects.count(), StaleAgreement.objects.count()) == (0, 0)


@pytest.mark.parametrize(
    ("user", "nice", "idle", "needed"),
    [(95, 0, 5, True), (85, 0, 15, False), (40, 60, 0, False), (10, 0, 0, False)],
    ids=["no time left", "some time left", "only workers besides", "too early to say"],
)
def test_processors_are_needed_where_ordinary_work_leaves_no_time(
    processors: Path, user: int, nice: int, idle: int, needed: bool
) -> None:
    watched = pacing.Processors()
    processors.write_text(LINE.format(user=user, nice=nice, idle=idle))
    assert watched.are_needed() is needed


@pytest.mark.django_db
@pytest.mark.parametrize(("program", "needed"), [("postgres", False), ("python3", True)])
def test_what_postgresql_does_for_this_connection_is_no_work_of_others(
    processors: Path, program: str, needed: bool
) -> None:
    connection.ensure_connection()
    backend = processors.parent / str(connection.connection.info.backend_pid) / "stat"
    backend.parent.mkdir()
    backend.write_text(f"7 ({program}) S 1 7 7 0 -1 0 0 0 0 0 10 5 0 0 20 0")
    watched = pacing.Processors()
    processors.write_text(LINE.format(user=95, nice=0, idle=5))
    backend.write_text(f"7 ({program}) S 1 7 7 0 -1 0 0 0 0 0 18 9 0 0 20 0")
    assert watched.are_needed() is needed


@pytest.mark.parametrize(("user", "needed"), [(55, True), (45, False)])
def test_two_processors_are_needed_where_less_than_one_is_left(processors: Path, user: int, needed: bool) -> None:
    another = "cpu1 1 1 1 1 1 1 1 1 1 1\n"
    processors.write_text(LINE.format(user=0, nice=0, idle=0) + another)
    watched = pacing.Processors()
    processors.write_text(LINE.format(user=user, nice=0, idle=100 - user) + another)
    assert watched.are_needed() is needed


def test_a_kernel_that_does_not_tell_needs_nothing(processors: Path) -> None:
    processors.unlink()
    assert not pacing.Processors().are_needed()


@pytest.mark.django_db
def test_a_slice_is_followed_by_a_rest_while_the_machine_is_busy(processors: Path, rests: list[float]) -> None:
    left = iter([1, 1, 0])

    def work() -> int:
        done = next(left)
        # Busy during the first slice only.
        processors.write_text(LINE.format(user=100, nice=0, idle=0 if done and not rests else 900))
        return done

    assert pacing.in_slices(work) == 2
    assert len(rests) == 1
