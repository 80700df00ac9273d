"""Work that nobody waits for gives way to imports and to everything at ordinary priority."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta

import pytest
from django.db import connection

from annotator.analysis.agreement.totals import refresh_all
from annotator.infrastructure.background import pacing
from annotator.infrastructure.db import locks
from annotator.infrastructure.db.clock import database_now
from annotator.models import ImportJob, Project, StaleAgreement, StaleWords
from annotator.reading.search.word_index import take_words
from tests.builders import make_task

PROCESSORS = 4


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: PROCESSORS)
    # What other tests have just closed is still ending.
    monkeypatch.setattr(pacing, "JUST_NOW_SECONDS", 0)


@contextmanager
def others_at_work(number: int) -> Iterator[None]:
    """So many sessions that do something, as the tests' database has no other ones."""
    with ExitStack() as stack:
        for _ in range(number):
            other = stack.enter_context(closing(connection.copy()))
            stack.enter_context(other.cursor()).execute("BEGIN")
        yield


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


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("cores", "others", "rested"),
    [(4, 2, False), (4, 3, True), (2, 0, False), (2, 1, True), (1, 0, False), (1, 1, True)],
)
def test_a_slice_is_followed_by_a_rest_where_others_leave_less_than_a_processor_beside_ours(
    monkeypatch: pytest.MonkeyPatch, rests: list[float], cores: int, others: int, rested: bool
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    with others_at_work(others):
        pacing.in_slices(slices(1))
    assert bool(rests) is rested


@pytest.mark.django_db
@pytest.mark.parametrize(("just_now", "counts"), [(0, False), (60, True)])
def test_a_session_that_was_at_work_just_now_takes_a_processor(
    monkeypatch: pytest.MonkeyPatch, just_now: float, counts: bool
) -> None:
    with closing(connection.copy()) as other, other.cursor() as cursor:
        cursor.execute("SELECT 1")
        monkeypatch.setattr(pacing, "JUST_NOW_SECONDS", just_now)
        assert (pacing.processors_left() < PROCESSORS) is counts
