"""What the client does is what the server does."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from annotator.models import Project, Task
from rewardloop import (
    Client,
    Conflict,
    Forbidden,
    Invalid,
    Lease,
    NotFound,
    NothingToRate,
    Progress,
    Rating,
    Unauthorized,
    WorkFailed,
)
from tests.builders import imported, json_lines, rate, task_row
from tests.conftest import Cast
from tests.rewardloop.conftest import URL, As


def full_rating(lease: Lease, level: int = 3) -> list[Rating]:
    keys = [attribute.key for attribute in lease.rubric.attributes]
    return [Rating(response=response.id, scores=dict.fromkeys(keys, level)) for response in lease.task.responses]


def test_it_knows_whose_token_it_has(carol: Client) -> None:
    me = carol.me()
    assert (me.username, [(part.project, part.role) for part in me.memberships]) == ("carol", [("talk", "manager")])


def test_a_project_has_what_the_role_may_see(carol: Client, alice: Client) -> None:
    assert carol.project("talk").progress is not None
    seen = alice.project("talk")
    assert seen.progress is None
    assert seen.own is not None
    assert seen.own.role == "annotator"
    assert carol.project("talk").raw["base_annotators"] == 3


def test_a_list_is_read_page_by_page(project: Project, carol: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    imported(project, *(task_row(f"t{number}") for number in range(5)))
    monkeypatch.setattr("rewardloop.connection.PAGE_SIZE", 2)
    tasks = list(carol.tasks("talk", state="open"))
    assert [task.id for task in tasks] == [f"t{number}" for number in range(5)]
    assert tasks[0].responses[0].model == "model-0"
    assert tasks[0].conversation[0].content == "What is t0?"


def test_rows_are_imported_and_the_refused_ones_listed(carol: Client) -> None:
    heard: list[Progress] = []
    done = carol.import_tasks("talk", [task_row("a"), {"bad": 1}, task_row("b")], on_progress=heard.append)
    assert (done.created, done.existing, done.rejected, done.dry_run) == (2, 0, 1, False)
    (row,) = done.refused
    assert (row.line, row.field) == (2, "prompt")
    assert {progress.doing for progress in heard} == {"sending", "importing"}
    assert heard[-1].done == heard[-1].total > 0
    assert done.import_id is not None


def test_a_file_is_imported_with_a_mapping_after_a_look(carol: Client, tmp_path: Path) -> None:
    file = tmp_path / 'odd "name".csv'
    file.write_text("question,answer_1,answer_2\nName a prime.,7,8\n")
    mapping = {"prompt": "question", "responses": [{"text": "answer_1"}, {"text": "answer_2"}]}
    assert carol.import_tasks("talk", file, mapping=mapping, dry_run=True).created == 1
    assert not Task.objects.exists()
    with file.open("rb") as opened:
        assert carol.import_tasks("talk", opened, mapping=mapping).created == 1
    assert Task.objects.get().responses.count() == 2


def test_what_an_import_says_of_its_rows_is_handed_on(carol: Client) -> None:
    row = {"prompt": "A?", "response_a": "7", "response_b": "7", "lang": "Deutsch", "label": "A or B"}
    done = carol.import_tasks("talk", [row, {**row, "prompt": "B?"}])
    assert [(note.line, note.rows) for note in done.notes] == [(1, 2)] * 4
    same, language, judging, _ = (note.text for note in done.notes)
    assert ("the same" in same, "“Deutsch”" in language, "metadata: label." in judging) == (True, True, True)


def test_a_file_that_is_none_fails_with_the_reason(carol: Client) -> None:
    with pytest.raises(WorkFailed, match="is failed"):
        carol.import_tasks("talk", json_lines(b"PAR1 and nothing else PAR1"))


def test_a_task_is_rated_skipped_and_given_back(project: Project, alice: Client) -> None:
    imported(project, *(task_row(f"t{number}") for number in range(3)))
    lease = alice.next_task("talk")
    assert isinstance(lease, Lease)
    alice.renew(lease.assignment)
    stored = alice.submit(lease.assignment, full_rating(lease), justification="Both are fine.", and_next=True)
    assert (stored.revision, stored.counts) == (1, True)
    assert isinstance(stored.next, Lease)
    alice.skip(stored.next.assignment, "other", note="I wrote it.")
    last = alice.next_task("talk")
    assert isinstance(last, Lease)
    alice.give_back(last.assignment)
    again = alice.next_task("talk")
    assert isinstance(again, Lease)
    alice.report(again.assignment, "harmful")
    nothing = alice.next_task("talk")
    assert not nothing
    assert isinstance(nothing, NothingToRate)
    assert nothing.reason == "you_did_all"


def test_an_incomplete_rating_is_refused_with_its_fields(project: Project, alice: Client) -> None:
    imported(project, task_row())
    lease = alice.next_task("talk")
    assert isinstance(lease, Lease)
    with pytest.raises(Invalid) as refused:
        alice.submit(lease.assignment, [{"response": lease.task.responses[0].id, "scores": {}}])
    assert (refused.value.status, bool(refused.value.detail)) == (400, True)


def test_labels_leave_as_rows_and_as_a_file(project: Project, cast: Cast, carol: Client, tmp_path: Path) -> None:
    imported(project, task_row("a", prompt="One\u2028line"))
    for user in cast.annotators:
        rate(project, user)
    rows = list(carol.rows("talk", "helpsteer2"))
    assert [(row["prompt"], row["helpfulness"]) for row in rows] == [("One\u2028line", 3)] * 2
    assert next(carol.rows("talk", "helpsteer2", fields=["prompt"])) == {"prompt": "One\u2028line"}
    heard: list[Progress] = []
    file = carol.export("talk", tmp_path / "labels.jsonl", layout="helpsteer2", on_progress=heard.append)
    assert [json.loads(line) for line in file.read_bytes().split(b"\n") if line] == rows
    assert list(tmp_path.glob("labels*")) == [file]
    assert heard[-1] == Progress("receiving", file.stat().st_size, file.stat().st_size)


@pytest.mark.django_db(transaction=True)
def test_a_release_is_made_and_downloaded(project: Project, cast: Cast, carol: Client, tmp_path: Path) -> None:
    imported(project, task_row("a"), task_row("b"))
    for user in cast.annotators:
        rate(project, user)
    made = carol.create_release("talk", title="Answers", license="cc-by-4.0")
    done = carol.wait_for_release("talk", made.number)
    assert (done.state, done.title) == ("done", "Answers")
    archive = carol.download_release("talk", made.number, to=tmp_path / "release.tar")
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == done.archive_sha256
    assert [one.number for one in carol.releases("talk")] == [made.number]
    half = archive.stat().st_size // 2
    (tmp_path / "again.tar.part").write_bytes(archive.read_bytes()[:half])
    (tmp_path / "again.tar.part.etag").write_text(f'"{done.archive_sha256}"')
    heard: list[Progress] = []
    again = carol.download_release("talk", made.number, to=tmp_path / "again.tar", on_progress=heard.append)
    assert again.read_bytes() == archive.read_bytes()
    assert heard[0].done > half
    carol.delete_release("talk", made.number)
    assert list(carol.releases("talk")) == []


def test_refusals_have_a_class_for_each_kind(carol: Client, alice: Client, cast: Cast, transport: Any) -> None:
    with pytest.raises(NotFound):
        carol.project("nowhere")
    with pytest.raises((Forbidden, NotFound)):
        list(alice.tasks("talk"))
    with pytest.raises(Conflict) as conflict:
        carol.start_run("talk")
    assert conflict.value.code
    with Client(URL, "no such token", transport=transport) as stranger, pytest.raises(Unauthorized):
        stranger.me()
    with pytest.raises(NotFound):
        list(carol.rows("nowhere"))


def test_a_project_is_made_and_gets_members(cast: Cast, client_of: As) -> None:
    cast.carol.is_staff = True
    cast.carol.save()
    carol = client_of(cast.carol)
    assert carol.create_project("more", "More", base_annotators=1).slug == "more"
    carol.add_member("more", "dave")
    assert [project.slug for project in carol.projects()] == ["talk", "more"]
    assert list(carol.projects(archived=True)) == []


def test_nothing_to_score_is_refused_by_the_server(carol: Client) -> None:
    with pytest.raises(Invalid, match="items"):
        carol.score([], project="talk")


def test_a_password_becomes_a_token(cast: Cast, transport: Any) -> None:
    cast.dave.set_password("correct horse battery")
    cast.dave.save()
    with Client(URL, transport=transport) as client:
        token = client.log_in("dave", "correct horse battery", name="script", scopes=["read"], days=3)
    assert token.token not in repr(token)
    with Client(URL, token.token, transport=transport) as dave:
        assert dave.me().username == "dave"


# Data sets of the Hub ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("hub")
def test_each_file_of_a_data_set_of_the_hub_is_imported(carol: Client, project: Project) -> None:
    carol.import_tasks("talk", [task_row("before")])
    done = carol.import_tasks("talk", "hub:ours/rows")
    assert (done.name, done.created, done.rejected) == ("ours/rows", 2, 0)
    assert [(file.name.rpartition("@")[2][41:], file.created) for file in done.files] == [
        ("edit/train.jsonl", 1),
        ("preference/train.jsonl", 1),
    ]
    assert Task.objects.count() == 3


@pytest.mark.usefixtures("hub")
def test_a_second_request_is_told_what_came_of_its_own_jobs(carol: Client) -> None:
    carol.import_tasks("talk", "hub:ours/rows")
    again = carol.import_tasks("talk", "hub:ours/rows", dry_run=True)
    assert (again.created, again.existing, len(again.files), again.dry_run) == (0, 2, 2, True)


@pytest.mark.usefixtures("hub")
def test_a_part_of_a_data_set_has_the_result_of_a_file(carol: Client) -> None:
    done = carol.import_tasks("talk", "hub:ours/rows/edit")
    assert (done.created, done.files, done.import_id is not None) == (1, (), True)


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize(
    ("name", "kind", "why"),
    [
        ("hub:rows", Invalid, "names no data set: write OWNER/NAME"),
        ("hub:ours/gone", WorkFailed, "The import of ours/gone is failed. hub:ours/gone cannot be read from the Hub"),
        ("hub:ours/rows/nothing", WorkFailed, "holds no file of rows"),
    ],
)
def test_what_the_hub_does_not_have_is_said(carol: Client, name: str, kind: type[Exception], why: str) -> None:
    with pytest.raises(kind, match=why):
        carol.import_tasks("talk", name)
