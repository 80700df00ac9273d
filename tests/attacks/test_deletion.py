"""Nothing is lost by one call: a project is archived first, and deleted when its slug is typed."""

from collections.abc import Mapping

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from rest_framework.test import APIClient

from annotator import tasks
from annotator.infrastructure.refusals import Refusal
from annotator.managing import deletion
from annotator.models import Annotation, Assignment, AuditEntry, Project, Task
from annotator.models.public_ids import response_number
from annotator.stages import annotation, assignment
from annotator.stages.gold import qualification
from annotator.stages.importing import import_rows
from rewards.runs import runs
from tests.builders import NOW, claimed, json_lines, make_gold, make_task, rate, submission, task_row
from tests.conftest import As, Cast
from tests.refusals import refusal

TALK = "/api/v1/projects/talk/"


@pytest.fixture
def rated(project: Project, cast: Cast) -> Project:
    make_task(project)
    rate(project, cast.alice)
    return project


# Archived ------------------------------------------------------------------------------------------------------


def test_an_archived_project_takes_no_work(rated: Project, cast: Cast, carol: APIClient, as_user: As) -> None:
    assert carol.post(f"{TALK}archive/").json()["archived_at"]
    body = as_user(cast.bob).post(f"{TALK}next/").json()
    assert (body["assignment"], body["reason"]) == (None, "project_archived")
    sent = carol.post(f"{TALK}import/", [task_row()])
    assert (sent.status_code, sent.json()["code"]) == (409, "archived")
    assert carol.post(f"{TALK}training-runs/", {"reason": "now"}).json()["code"] == "archived"
    for call in (
        lambda: import_rows(rated, json_lines(task_row()), now=NOW),
        lambda: runs.request(rated, reason="now"),
    ):
        with pytest.raises(Refusal, match="is archived"):
            call()


def test_what_is_held_may_be_handed_in(project: Project, cast: Cast, carol: APIClient, as_user: As) -> None:
    task = make_task(project)
    held = claimed(project, cast.alice)
    carol.post(f"{TALK}archive/")
    ratings = [
        {"response": response_number(pk), "scores": rating.scores} for pk, rating in submission(task).ratings.items()
    ]
    answer = as_user(cast.alice).put(f"/api/v1/assignments/{held.pk}/annotation/", {"ratings": ratings})
    assert answer.status_code == 201


def test_an_archived_project_stands_in_no_list(rated: Project, cast: Cast, carol: APIClient, staff: Client) -> None:
    carol.post(f"{TALK}archive/")
    assert carol.get("/api/v1/projects/").json()["results"] == []
    assert [result["slug"] for result in carol.get("/api/v1/projects/?archived=true").json()["results"]] == ["talk"]
    assert carol.get("/api/v1/me/").json()["memberships"] == []
    assert "Talk" not in staff.get("/").content.decode().partition("<details")[0], "it is folded away"
    assert staff.get("/admin/annotator/project/").context["cl"].result_count == 0
    assert staff.get("/admin/annotator/project/?archived=yes").context["cl"].result_count == 1


def test_an_archived_project_is_brought_back_whole(rated: Project, cast: Cast, carol: APIClient) -> None:
    carol.post(f"{TALK}archive/")
    assert carol.delete(f"{TALK}archive/").json()["archived_at"] is None
    assert assignment.claim(Project.objects.get(), cast.bob, now=NOW).assignment
    assert Annotation.objects.count() == 1


# Deleted -------------------------------------------------------------------------------------------------------


def test_one_call_deletes_nothing(rated: Project, carol: APIClient) -> None:
    answer = carol.delete(f"{TALK}?confirm=talk")
    assert (answer.status_code, answer.json()["code"]) == (409, "not_archived")
    carol.post(f"{TALK}archive/")
    for confirm in ("", "?confirm=", "?confirm=tal", "?confirm=1"):
        answer = carol.delete(f"{TALK}{confirm}")
        assert (answer.status_code, answer.json()["code"]) == (409, "not_confirmed")
        assert "1 task, 1 annotation and 0 reward models" in answer.json()["detail"]
        assert answer.json()["detail"].endswith("Send it as ?confirm=talk.")
    assert Annotation.objects.count() == 1


def test_what_would_go_is_counted_in_the_language_of_the_reader(
    rated: Project, german: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion, "contents", lambda _: deletion.Contents(1_200, 1, 0))
    refused = r"Talk enthält 1\.200 Aufgaben, 1 Bewertung und 0 Belohnungsmodelle\. Archivieren Sie"
    with refusal("not_archived", match=refused):
        deletion.delete(rated, confirm="talk", now=NOW)


def test_the_typed_slug_deletes(rated: Project, carol: APIClient) -> None:
    carol.post(f"{TALK}archive/")
    assert carol.delete(f"{TALK}?confirm=talk").status_code == 204
    assert not Project.objects.exists()
    entry = AuditEntry.objects.get(action="project.deleted")
    assert entry.details == {"tasks": 1, "annotations": 1, "models": 0}


def test_a_large_project_goes_in_the_background(
    rated: Project, carol: APIClient, cast: Cast, as_user: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("annotator.managing.deletion.SYNC_LIMIT", 3)
    monkeypatch.setattr("annotator.managing.deletion.AT_ONCE", 2)
    for _ in range(4):
        make_task(rated)
    carol.post(f"{TALK}archive/")
    assert carol.delete(f"{TALK}?confirm=talk").status_code == 202
    assert carol.get(TALK).status_code == 404
    assert as_user(cast.alice).post(f"{TALK}next/").status_code == 404
    assert Task.objects.count() == 5
    assert tasks.finish_deletions() == 5
    assert not Project.objects.exists()
    assert tasks.finish_deletions() == 0


def test_nobody_works_in_a_project_that_is_being_deleted(project: Project, cast: Cast, as_user: As) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    Project.objects.update(archived_at=NOW, deleted_at=NOW)
    alice, place = as_user(cast.alice), f"/api/v1/assignments/{held.pk}/"
    assert alice.post(f"{place}skip/", {"reason": "other"}).status_code == 404
    with pytest.raises(Assignment.DoesNotExist):
        annotation.submit_own(cast.alice, held.pk, submission(held.task), now=NOW)


def test_nobody_takes_a_test_in_it(project: Project, cast: Cast, client: Client) -> None:
    make_gold(project, use="practice")
    run = qualification.begin(cast.alice.memberships.get(), "practice", now=NOW)
    Project.objects.update(archived_at=NOW, deleted_at=NOW)
    client.force_login(cast.alice)
    assert client.get(f"/qualification/{run.pk}/").status_code == 404


def test_no_command_names_it(project: Project) -> None:
    Project.objects.update(archived_at=NOW, deleted_at=NOW)
    with pytest.raises(CommandError, match="Projects: none yet"):
        call_command("export_labels", "talk")
