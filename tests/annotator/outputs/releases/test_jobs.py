"""A release on its way: numbered, written, killed, resumed, cancelled, withdrawn when a text is erased, swept."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import IntegrityError, transaction

from annotator.infrastructure import jobs as engine
from annotator.infrastructure.background import heartbeats
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.storage import disk_space
from annotator.infrastructure.storage.disk_space import DiskNearlyFull
from annotator.models import AuditEntry, Import, Project, Release, ReleaseTask, Task
from annotator.outputs.releases import folder, release_jobs
from annotator.outputs.releases.particulars import Particulars
from annotator.stages.importing import take_back
from annotator.stages.importing.bulk_copy import copy_rows
from annotator.stages.pii.redaction import Choice, redact
from tests.annotator.outputs.releases.conftest import Made, again, elsewhere
from tests.builders import NOW, claimed, imported, label_row, make_import
from tests.celery_workers import environment, wait_for
from tests.conftest import Cast
from tests.refusals import refusal

State = Release.State
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_writing_process")]


@pytest.fixture
def waiting(project: Project, cast: Cast, rated: list[Task]) -> Release:
    return release_jobs.request(project, Particulars(), by=cast.carol, now=database_now())


def at_the_first_row(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Does something elsewhere once a row is read, and waits until the worker has had time to notice."""
    count, done = engine.Pulse.count, threading.Event()

    def act_once(of_release: Any) -> None:
        count(of_release)
        if not done.is_set():
            done.set()
            elsewhere(act)
            time.sleep(0.2)

    monkeypatch.setattr(engine, "BEAT_SECONDS", 0.02)
    monkeypatch.setattr(engine.Pulse, "count", act_once)


# Numbers and limits ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("rated")
def test_a_number_is_never_used_again(made: Made) -> None:
    made()
    release_jobs.delete(made())
    assert made().number == 3
    assert list(Release.objects.order_by("number").values_list("number", flat=True)) == [1, 3]


def test_a_number_stands_once_in_a_project(waiting: Release) -> None:
    with pytest.raises(IntegrityError, match="release_number_once_per_project"), transaction.atomic():
        Release.objects.create(project=waiting.project, number=1, license="mit", created_at=NOW)


@pytest.mark.parametrize(
    ("state", "constraint"),
    [("failed", "release_finished_once_ended"), ("done", "release_(finished_once_ended|has_a_hash_while)")],
)
def test_an_ended_release_has_an_end(waiting: Release, state: str, constraint: str) -> None:
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        Release.objects.update(state=state)


@pytest.mark.usefixtures("rated")
def test_a_project_has_so_many_releases_and_no_more(
    project: Project, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release_jobs, "MOST", 2)
    first, _ = made(), made()
    with pytest.raises(release_jobs.TooManyReleaseJobs, match="Talk has 2 releases"):
        made()
    release_jobs.delete(first)
    assert made().number == 3


def test_two_who_ask_at_once_get_two_numbers(project: Project, cast: Cast, rated: list[Task]) -> None:
    def ask() -> Release:
        return release_jobs.add(project, Particulars(), by=cast.carol, now=NOW)

    with transaction.atomic():
        ask()
        second = threading.Thread(target=elsewhere, args=(ask,))
        second.start()
        second.join(0.3)
        assert second.is_alive()  # it waits for the first one's number
    second.join()
    assert sorted(Release.objects.values_list("number", flat=True)) == [1, 2]


def test_a_webhook_is_told_once_it_can_be_downloaded(project: Project, made: Made, rated: list[Task]) -> None:
    hook = project.webhooks.create(url="https://example.org/", secret="whsec_AAAA", created_at=NOW)
    release = made()
    (delivery,) = hook.deliveries.filter(event="release.ready")
    assert (delivery.data["release"], delivery.data["tasks"]) == (release.number, len(rated))


def test_it_is_written_into_the_audit(waiting: Release) -> None:
    release_jobs.run_waiting()
    release_jobs.delete(waiting)
    entries = AuditEntry.objects.filter(action__startswith="release.").order_by("pk")
    assert list(entries.values_list("action", flat=True)) == ["release.requested", "release.made", "release.deleted"]


# Workers that end ------------------------------------------------------------------------------------------

KILLED = """
import time, django
django.setup()
from annotator.infrastructure import jobs as engine
count = engine.Pulse.count
def count_and_hang(of_release):
    count(of_release)
    if of_release.expected is not None and of_release.rows == 2:  # the first row is read before its file is begun
        print("writing", flush=True)
        time.sleep(600)
engine.Pulse.count = count_and_hang
from annotator.outputs.releases import release_jobs
release_jobs.run_waiting()
"""


def test_a_worker_that_is_killed_leaves_the_release_to_the_next_one(
    waiting: Release, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED],
        stdout=subprocess.PIPE,
        env=environment(tmp_path, DJANGO_SETTINGS_MODULE="annotator.settings"),
    )
    request.addfinalizer(process.kill)
    assert process.stdout is not None
    assert process.stdout.readline() == b"writing\n"
    assert again(waiting).state == State.WORKING
    assert list(waiting.unfinished_folder().glob("data/*"))
    assert release_jobs.run_waiting() == 0  # the other process is at it
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    wait_for(release_jobs.run_waiting, what="the lock of the dead process")
    release = again(waiting)
    assert (release.state, release.tries, release.attempt) == (State.DONE, 2, 2)
    assert not release.unfinished_folder().exists()


def test_a_worker_that_ends_puts_the_release_down(waiting: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    stopping = threading.Event()
    for module in (heartbeats, engine):
        monkeypatch.setattr(module, "stopping", stopping)
    at_the_first_row(monkeypatch, stopping.set)
    release_jobs.run_waiting()
    assert (again(waiting).state, again(waiting).tries) == (State.WAITING, 0)
    stopping.clear()
    release_jobs.run_waiting()
    assert again(waiting).state == State.DONE


def test_a_release_deleted_under_the_worker_leaves_nothing(
    waiting: Release, monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    at_the_first_row(monkeypatch, lambda: release_jobs.delete(waiting))
    assert release_jobs.run_waiting() == 1
    assert not Release.objects.exists()
    assert list((Path(settings.ARTIFACTS) / "releases").iterdir()) == []


def test_a_disk_that_fills_up_ends_the_release_with_the_reason(
    waiting: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_: Any) -> None:
        raise DiskNearlyFull("The disk is nearly full.")

    at_the_first_row(monkeypatch, lambda: monkeypatch.setattr(disk_space, "require_room", full))
    release_jobs.run_waiting()
    assert (again(waiting).state, again(waiting).error) == (State.FAILED, "The disk is nearly full.")
    assert not waiting.unfinished_folder().exists()


def test_a_disk_that_is_full_is_no_fault_of_the_product(waiting: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder, "_write_file", full)
    release_jobs.run_waiting()
    assert (again(waiting).state, again(waiting).error) == (
        State.FAILED,
        "The disk is full. Try again when there is room.",
    )


def test_the_row_says_how_far_the_release_is(waiting: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Release] = []

    def look() -> None:
        time.sleep(0.2)
        seen.append(again(waiting))

    at_the_first_row(monkeypatch, look)
    release_jobs.run_waiting()
    (halfway,) = seen
    assert (halfway.state, halfway.rows_done, halfway.rows_expected) == (State.WORKING, 1, None)
    assert again(waiting).rows_expected in (None, again(waiting).rows_done)


# Texts that go ---------------------------------------------------------------------------------------------


def redacted(task: Task) -> None:
    Task.objects.filter(pk=task.pk).update(state=Task.State.QUARANTINED)
    redact(task.pk, Choice(quotes=["Answer 0"]), now=NOW)


def test_an_erased_text_withdraws_the_releases_that_hold_its_task(rated: list[Task], made: Made) -> None:
    Task.objects.filter(pk=rated[0].pk).update(state=Task.State.RETIRED)
    without = made()
    Task.objects.filter(pk=rated[0].pk).update(state=Task.State.COMPLETE)
    with_it = made()
    redacted(rated[0])
    assert (again(without).state, again(with_it).state) == (State.DONE, State.WITHDRAWN)
    with refusal("no_files", match="was erased"):
        release_jobs.folder_of(again(with_it), None)
    release_jobs.folder_of(again(without), None)
    assert (without.folder().exists(), with_it.folder().exists()) == (True, False)


def test_a_task_that_goes_with_its_import_withdraws_the_release(project: Project, made: Made) -> None:
    number = make_import(project, *(label_row(f"Prompt {n}?", "Yes.") for n in range(4)))
    release = made()
    assert release.state == State.DONE
    take_back(Import.objects.get(pk=number), by=None, now=NOW)
    assert again(release).state == State.WITHDRAWN


def test_a_text_that_goes_while_the_files_are_written_starts_them_again(
    waiting: Release, rated: list[Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_the_first_row(monkeypatch, lambda: redacted(rated[3]))
    assert release_jobs.run_waiting() == 2
    release = again(waiting)
    # The second time the mark of the redaction is found.
    assert (release.state, release.attempt) == (State.FAILED, 3)
    assert "t-3 (response: the mark of a redaction)" in release.error


def test_a_text_that_goes_at_the_very_end_is_not_missed(
    waiting: Release, rated: list[Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever erases waits until the release is stored, and withdraws it then."""
    erasing = threading.Thread(target=elsewhere, args=(lambda: redacted(rated[3]),))

    def erase_meanwhile(*args: Any) -> None:
        erasing.start()
        erasing.join(0.3)
        assert erasing.is_alive()
        copy_rows(*args)

    monkeypatch.setattr("annotator.outputs.releases.release_jobs.copy_rows", erase_meanwhile)
    release_jobs.run_waiting()
    erasing.join()
    assert again(waiting).state == State.WITHDRAWN


# Reading ---------------------------------------------------------------------------------------------------


def test_whoever_rates_a_task_of_the_release_does_not_read_it(project: Project, cast: Cast, made: Made) -> None:
    imported(project, *(label_row(f"Prompt {n}?", "Yes.") for n in range(4)))
    Project.objects.filter(pk=project.pk).update(base_annotators=1)
    release = made()
    task = Task.objects.filter(project=project).earliest("pk")
    Task.objects.filter(pk=task.pk).update(state=Task.State.OPEN, slots_wanted=3, open_slots=3)
    held = claimed(project, cast.alice)
    assert ReleaseTask.objects.filter(release=release, task_id=held.task_id).exists()
    with refusal("still_rating", match="You are rating a task of this release"):
        release_jobs.folder_of(release, cast.alice)
    assert release_jobs.folder_of(release, cast.bob) == release.folder()


def test_files_that_are_missing_are_named_so(waiting: Release) -> None:
    with refusal("no_files", match="not written yet"):
        release_jobs.folder_of(waiting, None)
    release_jobs.run_waiting()
    release = again(waiting)
    release.folder().rename(release.folder().with_name("elsewhere"))
    with refusal("no_files", match="missing from the disk"):
        release_jobs.folder_of(release, None)


def test_a_project_takes_its_releases_along(waiting: Release, settings: LazySettings) -> None:
    release_jobs.run_waiting()
    waiting.project.delete()
    assert release_jobs.sweep() == 1
    assert list((Path(settings.ARTIFACTS) / "releases").iterdir()) == []
