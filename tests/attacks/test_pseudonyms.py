"""A pseudonym hides somebody in one project, and tells nothing in another."""

import json
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from annotator.models import AuditEntry, Project, Role, User
from tests.builders import imported, make_member, make_project, make_task, make_user, rate, ratings_row
from tests.conftest import As, Cast


@pytest.fixture
def other(project: Project, cast: Cast) -> Project:
    """A second project, in which alice rates too and carol manages."""
    made = make_project("other")
    make_member(made, cast.alice)
    make_member(made, cast.carol, role=Role.MANAGER)
    for shared in (project, made):
        make_task(shared)
        rate(shared, cast.alice)
    return made


def exported(client: APIClient, slug: str) -> list[dict[str, Any]]:
    answer: Any = client.get(f"/api/v1/projects/{slug}/export/?layout=annotations")
    return [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]


def test_exports_of_two_projects_cannot_be_joined(other: Project, cast: Cast, as_user: As) -> None:
    here, there = (exported(as_user(cast.carol), slug)[0]["annotator"] for slug in ("talk", "other"))
    assert here != there


def test_every_door_of_a_project_says_the_same_pseudonym(other: Project, cast: Cast, as_user: As) -> None:
    carol = as_user(cast.carol)
    name = exported(carol, "other")[0]["annotator"]
    people = {
        member["username"]: member["pseudonym"]
        for member in carol.get("/api/v1/projects/other/members/").json()["results"]
    }
    mine = {
        membership["project"]: membership["pseudonym"]
        for membership in as_user(cast.alice).get("/api/v1/me/").json()["memberships"]
    }
    annotations = carol.get("/api/v1/projects/other/annotations/").json()["results"]
    assert {people["alice"], mine["other"], annotations[0]["annotator"]} == {name}
    assert mine["talk"] != name
    sent = {"annotator": name, "reason": "A bot."}
    assert carol.post("/api/v1/projects/other/exclusions/", sent).json()["annotator"] == name
    assert AuditEntry.objects.get(action="annotator.excluded").subject == f"annotator {name}"


def test_a_pseudonym_of_one_project_finds_nobody_in_another(
    other: Project, cast: Cast, as_user: As, client: Client
) -> None:
    carol = as_user(cast.carol)
    strange = exported(carol, "other")[0]["annotator"]
    assert carol.post("/api/v1/projects/talk/exclusions/?dry_run=1", {"annotator": strange}).status_code == 404
    carol.post("/api/v1/projects/talk/exclusions/", {"annotator": "alice", "reason": "A bot."})
    User.objects.filter(pk=cast.carol.pk).update(is_staff=True)
    client.force_login(cast.carol)
    listed = client.get(f"/admin/annotator/exclusion/?q={strange}")
    assert listed.context["cl"].result_count == 0


def test_the_account_itself_has_no_pseudonym(other: Project, cast: Cast, as_user: As) -> None:
    assert "pseudonym" not in as_user(cast.alice).get("/api/v1/me/").json()


def test_reviewers_pages_name_nobody_across_projects(other: Project, cast: Cast, client: Client) -> None:
    rita = make_user("rita")
    for shared in (Project.objects.get(slug="talk"), other):
        make_member(shared, rita, role=Role.REVIEWER)
    client.force_login(rita)
    name = other.pseudonyms.get(user=cast.alice).name
    assert name not in client.get("/projects/talk/agreement/").content.decode()
    assert name not in client.get("/projects/talk/annotators/").content.decode()


def test_imported_raters_have_pseudonyms_too(project: Project, cast: Cast, as_user: As) -> None:
    imported(project, ratings_row("p", "a", [1, 4, 4]))
    names = {row["annotator"] for row in exported(as_user(cast.carol), "talk")}
    assert len(names) == 3
    assert all(name.startswith("r-") for name in names)


def test_a_pseudonym_outlives_the_membership(project: Project, cast: Cast, as_user: As) -> None:
    make_task(project)
    rate(project, cast.alice)
    carol = as_user(cast.carol)
    before = exported(carol, "talk")[0]["annotator"]
    assert carol.delete("/api/v1/projects/talk/members/alice/").status_code == 204
    carol.post("/api/v1/projects/talk/members/", {"username": "alice"})
    assert exported(carol, "talk")[0]["annotator"] == before
