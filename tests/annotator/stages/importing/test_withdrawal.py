"""An import taken back: its tasks go while nobody has rated them."""

import io

import pytest
from django.core.management import CommandError, call_command

from annotator.infrastructure.storage import disk_space
from annotator.models import AuditEntry, Import, Label, Project, QualificationRun, Tally, Task
from annotator.stages import annotation, assignment
from annotator.stages.gold import qualification
from annotator.stages.importing import TakenBack, batches, import_rows, take_back, withdrawal, withdrawal_preview
from tests.builders import (
    ATTRIBUTES,
    NOW,
    claimed,
    gold_row,
    imported,
    json_lines,
    label_row,
    make_import,
    ratings_row,
    submission,
    task_row,
)
from tests.conftest import As, Cast
from tests.refusals import refusal

IMPORTS = "/api/v1/projects/talk/imports/"


def imported_file(project: Project, *names: str) -> Import:
    return Import.objects.get(pk=make_import(project, *(task_row(name) for name in names)))


def test_an_import_leaves_a_row(project: Project, cast: Cast) -> None:
    file = json_lines(task_row("a"), task_row("b"), {"bad": 1})
    result = import_rows(project, file, now=NOW, by=cast.carol, file_name="/home/carol/tasks.jsonl")
    made = Import.objects.get()
    assert made.pk == result.import_id
    assert (made.by, made.file_name, made.file_bytes, made.layouts) == (
        cast.carol,
        "tasks.jsonl",
        len(file.getvalue()),
        ["tasks"],
    )
    assert (made.created, made.existing, made.rejected, len(made.file_hash)) == (2, 0, 1, 64)
    assert set(made.tasks.values_list("external_id", flat=True)) == {"a", "b"}


def test_a_file_that_made_nothing_leaves_none(project: Project) -> None:
    import_rows(project, io.BytesIO(b"{}\n"), now=NOW)
    import_rows(project, json_lines(task_row()), now=NOW, dry_run=True)
    assert Import.objects.count() == 0
    imported_file(project, "a")
    assert imported(project, task_row("a")).import_id is None


def test_only_its_own_tasks_go(project: Project, cast: Cast) -> None:
    imported_file(project, "before")
    made = imported_file(project, "before", "a", "b")
    imported_file(project, "after")
    done = take_back(made, by=cast.carol, now=NOW)
    assert (done.removed, done.taken_back_by, done.all_gone_at) == (2, cast.carol, NOW)
    assert set(Task.objects.values_list("external_id", flat=True)) == {"before", "after"}
    assert AuditEntry.objects.filter(action="tasks.taken_back").count() == 1


def test_the_same_file_can_come_again(project: Project) -> None:
    take_back(imported_file(project, "a"), by=None, now=NOW)
    assert imported_file(project, "a").created == 1


def test_what_somebody_has_rated_keeps_the_import(project: Project, cast: Cast) -> None:
    made = imported_file(project, "a", "b", "c")
    held = claimed(project, cast.alice)
    annotation.submit(held.pk, submission(held.task), now=NOW)
    with refusal("already_rated", match="1 of the 3 tasks"):
        take_back(made, by=None, now=NOW)
    assert (Task.objects.count(), Import.objects.get().taken_back_at) == (3, None)


def test_an_answer_in_the_qualification_keeps_the_import(project: Project, cast: Cast) -> None:
    made = Import.objects.get(pk=make_import(project, gold_row("g", use="practice")))
    run = QualificationRun.objects.create(
        member=cast.alice.memberships.get(), kind="practice", number=1, started_at=NOW
    )
    task = Task.objects.get()
    scores = {response.pk: dict.fromkeys(ATTRIBUTES, 1) for response in task.responses.all()}
    qualification.answer(run, task, scores, now=NOW)
    with refusal("already_rated"):
        take_back(made, by=None, now=NOW)


def test_leases_go_with_their_tasks(project: Project, cast: Cast) -> None:
    made = imported_file(project, "a")
    claimed(project, cast.alice)
    assert withdrawal_preview(made).leases == 1
    take_back(made, by=None, now=NOW)
    assert assignment.claim(project, cast.alice, now=NOW).assignment is None


def test_what_came_with_the_file_goes_too(project: Project) -> None:
    made = Import.objects.get(pk=make_import(project, label_row("p", "r"), ratings_row("q", "r", [1, 2, 3])))
    preview = withdrawal_preview(made)
    assert (preview.tasks, preview.rated, preview.imported_annotations) == (2, 0, 3)
    take_back(made, by=None, now=NOW)
    assert (Task.objects.count(), Label.objects.count()) == (0, 0)
    assert set(Tally.objects.values_list("done", flat=True)) == {0}


def test_a_task_that_is_rated_meanwhile_stays(project: Project, cast: Cast) -> None:
    made = withdrawal.begin(imported_file(project, "a", "b"), by=None, now=NOW)
    held = claimed(project, cast.alice)
    annotation.submit(held.pk, submission(held.task), now=NOW)
    done = withdrawal.finish(made, now=NOW)
    assert (done.removed, Task.objects.get().pk) == (1, held.task_id)


def test_an_import_that_is_taken_back_while_it_runs_ends(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    rooms = iter([None, lambda: take_back(Import.objects.get(), by=None, now=NOW)])
    monkeypatch.setattr(batches, "BATCH", 1)
    monkeypatch.setattr(disk_space, "require_room", lambda: (act := next(rooms)) and act())
    with pytest.raises(TakenBack, match="import the file again"):
        import_rows(project, json_lines(task_row("a"), task_row("b"), task_row("c")), now=NOW)
    made = Import.objects.get()
    assert (made.created, made.removed, Task.objects.count()) == (1, 1, 0)


def test_a_large_import_goes_in_the_background(project: Project, monkeypatch: pytest.MonkeyPatch, cast: Cast) -> None:
    monkeypatch.setattr(withdrawal, "SYNC_LIMIT", 1)
    made = imported_file(project, "a", "b")
    with refusal("no_worker"):
        take_back(made, by=None, now=NOW)
    withdrawal.begin(made, by=cast.carol, now=NOW)
    assert withdrawal.finish_all(now=NOW) == 1
    assert withdrawal.finish_all(now=NOW) == 0
    assert Task.objects.count() == 0


def test_rest_lists_foresees_and_takes_back(project: Project, cast: Cast, as_user: As) -> None:
    carol, made = as_user(cast.carol), imported_file(project, "a", "b")
    (row,) = carol.get(IMPORTS).json()["results"]
    assert (row["id"], row["created"], row["by"]) == (made.pk, 2, "")
    assert carol.delete(f"{IMPORTS}{made.pk}/?dry_run=1").json()["tasks"] == 2
    assert Task.objects.count() == 2
    answer = carol.delete(f"{IMPORTS}{made.pk}/")
    assert (answer.status_code, answer.json()["removed"]) == (200, 2)


def test_a_refusal_over_rest_says_why(project: Project, cast: Cast, as_user: As) -> None:
    made, held = imported_file(project, "a"), claimed(project, cast.alice)
    annotation.submit(held.pk, submission(held.task), now=NOW)
    answer = as_user(cast.carol).delete(f"{IMPORTS}{made.pk}/")
    assert (answer.status_code, answer.json()["code"]) == (409, "already_rated")


def test_the_command_lists_foresees_and_takes_back(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    made = imported_file(project, "a")
    call_command("take_back_import", "talk")
    call_command("take_back_import", "talk", made.pk, dry_run=True)
    call_command("take_back_import", "talk", made.pk)
    said = capsys.readouterr().out
    assert f"{made.pk}  2026-01-31 12:00" in said
    assert "1 tasks would go" in said
    assert "1 tasks removed" in said
    with pytest.raises(CommandError, match="There is no import"):
        call_command("take_back_import", "talk", made.pk + 1)
