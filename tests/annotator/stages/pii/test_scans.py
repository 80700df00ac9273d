"""Every task is looked into once, by a process that does not stay."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from pytest_django import DjangoCaptureOnCommitCallbacks

from annotator.infrastructure.background import pacing
from annotator.management import demo
from annotator.models import PiiSpan, Project, Task
from annotator.stages.pii import scans
from annotator.stages.pii.recognisers import Found
from annotator.stages.pii.scans import PROGRAM, Scanner, ScannerFailed, Scanners, scan, scan_all
from annotator.stages.pii.texts import text_at, texts_of
from tests.builders import NOW, imported, make_task, task_row
from tests.celery_workers import wait_for, worker

MAIL = "Write to marla@example.com today."


@pytest.fixture(scope="module")
def scanner() -> Iterator[Scanner]:
    with Scanner() as started:
        yield started


def finds_first_letters(texts: Sequence[str]) -> list[list[Found]]:
    return [[Found(0, 1, "other")] for _ in texts]


def found_in(task: Task) -> set[tuple[str, str]]:
    texts = texts_of(task)
    return {(span.kind, text_at(span, texts)) for span in task.pii_spans.all()}


def test_spans_are_stored_where_they_stand(project: Project, scanner: Scanner) -> None:
    task = make_task(project, prompt=MAIL)
    assert scan(scanner.find, now=NOW) == 1
    assert found_in(task) == {("email", "marla@example.com")}
    span = task.pii_spans.get()
    assert (span.turn, span.response, span.source) == (0, None, "detected")


def test_responses_are_looked_into(project: Project, scanner: Scanner) -> None:
    row = task_row("t")
    row["responses"][1]["text"] = MAIL
    imported(project, row)
    scan(scanner.find, now=NOW)
    assert PiiSpan.objects.get().response == Task.objects.get().responses.get(position=1)


def test_a_second_scan_finds_nothing_to_do(project: Project) -> None:
    make_task(project)
    assert [scan(finds_first_letters, now=NOW) for _ in range(2)] == [1, 0]
    assert Task.objects.get().pii_scanned_at == NOW


def test_more_than_a_batch_is_scanned(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "BATCH", 2)
    imported(project, *[task_row() for _ in range(5)])
    assert scan(finds_first_letters, now=NOW) == 5
    assert PiiSpan.objects.count() == 15


def test_two_scans_at_once_store_each_span_once(project: Project) -> None:
    make_task(project)

    def overtaken(texts: Sequence[str]) -> list[list[Found]]:
        scan(finds_first_letters, now=NOW)
        return finds_first_letters(texts)

    assert scan(overtaken, now=NOW) == 0
    assert PiiSpan.objects.count() == 3


def test_a_text_redacted_meanwhile_is_scanned_again(project: Project) -> None:
    task, calls = make_task(project), []

    def redacted_meanwhile(texts: Sequence[str]) -> list[list[Found]]:
        calls.append(len(texts))
        if len(calls) == 1:
            Task.objects.filter(pk=task.pk).update(redacted_at=NOW)
        return finds_first_letters(texts)

    assert scan(redacted_meanwhile, now=NOW) == 1
    assert len(calls) == 2


def test_a_task_that_ends_the_scanner_holds_nobody_up(project: Project) -> None:
    make_task(project, "good")
    make_task(project, "bad", prompt="crash")

    def crashing(texts: Sequence[str]) -> list[list[Found]]:
        if "crash" in texts:
            raise ScannerFailed
        return finds_first_letters(texts)

    assert scan(crashing, now=NOW) == 2
    assert {span.task.external_id for span in PiiSpan.objects.all()} == {"good"}


def test_a_dead_child_is_followed_by_another() -> None:
    with Scanner() as scanner:
        scanner.find(["x"])
        assert scanner.process
        scanner.process.kill()
        with pytest.raises(ScannerFailed):
            scanner.find([MAIL])
        assert scanner.find([MAIL]) == [[Found(9, 26, "email")]]


def test_a_child_that_takes_too_long_is_ended() -> None:
    with Scanner(patience=0.01) as scanner, pytest.raises(ScannerFailed):
        scanner.find(["x"])


@pytest.mark.django_db
@pytest.mark.parametrize("texts", [[], [MAIL], [MAIL, "x", MAIL], ["x"] * 5 + [MAIL]])
def test_several_scanners_answer_in_the_order_of_the_texts(texts: list[str]) -> None:
    with Scanner() as one, Scanners(3) as three:
        assert three.find(texts) == one.find(texts)


def test_the_death_of_one_of_several_children_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "processors_left", lambda: 2)
    with Scanners(2) as scanners:
        scanners.find(["x", "y"])
        assert scanners.scanners[1].process
        scanners.scanners[1].process.kill()
        with pytest.raises(ScannerFailed):
            scanners.find([MAIL, MAIL])
        assert scanners.find(["x", MAIL]) == [[], [Found(9, 26, "email")]]


def test_one_scanner_works_while_others_need_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "processors_left", lambda: 1)
    with Scanners(2) as scanners:
        assert scanners.find(["x", MAIL]) == [[], [Found(9, 26, "email")]]
        assert scanners.scanners[1].process is None


@pytest.mark.django_db(transaction=True)
def test_one_scan_at_a_time(project: Project) -> None:
    make_task(project)
    with connection.copy().cursor() as other:
        other.execute("SELECT pg_advisory_lock(hashtext('pii'), 0)")
        assert scan_all(now=NOW) == 0
        other.execute("SELECT pg_advisory_unlock(hashtext('pii'), 0)")
    assert scan_all(now=NOW) == 1


def test_the_recognisers_call_no_other_host() -> None:
    watched = (
        "import sys, runpy\n"
        "def refuse(event, arguments):\n"
        "    if event in ('socket.connect', 'socket.getaddrinfo', 'socket.gethostbyname'):\n"
        "        sys.stderr.write(f'CALLED {arguments}')\n"
        "sys.addaudithook(refuse)\n"
        f"runpy.run_path({str(PROGRAM)!r}, run_name='__main__')\n"
    )
    command = [sys.executable, "-I", "-c", watched]
    done = subprocess.run(command, input=f'["{MAIL}"]\n', capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ('[[[9, 26, "email"]]]\n', "")


def test_an_import_asks_for_a_scan(
    project: Project, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks() as asked:
        imported(project, task_row("t"))
        imported(project, task_row("t"))
        imported(project, task_row("u"), dry_run=True)
    assert len(asked) == 1


def test_the_demo_has_personal_information(project: Project, scanner: Scanner) -> None:
    imported(project, *[dict(row) for row in demo_rows()])
    scan(scanner.find, now=NOW)
    assert found_in(Task.objects.get(external_id="demo-011")) >= {
        ("email", "marla.testperson@example.com"),
        ("phone", "555-0142"),
        ("ssn", "000-12-3456"),
        ("address", "12 Sample Street, Apt 3"),
    }
    assert set(PiiSpan.objects.values_list("task__external_id", flat=True)) == {"demo-011"}


def demo_rows() -> Iterator[dict[str, object]]:
    for line in (Path(demo.__file__).parent / "tasks.jsonl").read_text().splitlines():
        row = json.loads(line)
        responses = [{"id": response["id"], "text": response["text"]} for response in row["responses"]]
        yield {"id": row["id"], "messages": row["messages"], "responses": responses}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_light_worker_scans_after_an_import(project: Project, tmp_path: Path) -> None:
    with worker("light", tmp_path):
        make_task(project, prompt=MAIL)
        wait_for(PiiSpan.objects.exists, what="a span")
    assert settings.CELERY_BEAT_SCHEDULE["find-pii"]["task"] == "annotator.tasks.find_pii"
