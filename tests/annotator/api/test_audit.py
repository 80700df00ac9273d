"""A project's audit over REST."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from annotator.infrastructure import audit
from annotator.models import AuditEntry, Project, Token
from tests import builders
from tests.conftest import Cast

ADDRESS = "/api/v1/projects/talk/audit/"


def entries(client: APIClient, **query: Any) -> list[dict[str, Any]]:
    answer = client.get(ADDRESS, query)
    assert answer.status_code == 200, answer.data
    return list(answer.data["results"])


def test_managers_read_it_newest_first(project: Project, carol: APIClient) -> None:
    for number in range(3):
        audit.record("test.made", f"task t-{number}", project=project, number=number)
    assert [entry["details"]["number"] for entry in entries(carol)] == [2, 1, 0]


def test_it_has_no_entry_of_another_project(carol: APIClient) -> None:
    audit.record("test.made", "task t-1", project=builders.make_project("other"))
    audit.record("account.created", "account frank")
    assert entries(carol) == []


def test_it_is_filtered_by_who_what_and_when(project: Project, carol: APIClient) -> None:
    for actor, action in (("alice", "test.made"), ("bob", "test.made"), ("bob", "test.left")):
        with audit.acting(via="page", actor=actor):
            audit.record(action, "task t-1", project=project)
    latest = AuditEntry.objects.latest("pk").at
    assert [entry["actor"] for entry in entries(carol, action="test.made")] == ["bob", "alice"]
    assert len(entries(carol, actor="bob")) == 2
    assert [entry["action"] for entry in entries(carol, since=latest.isoformat())] == ["test.left"]


def test_pages_lead_on_to_the_oldest(project: Project, carol: APIClient) -> None:
    for number in range(5):
        audit.record("test.made", "task t-1", project=project, number=number)
    seen, address = [], f"{ADDRESS}?page_size=2"
    while address:
        page = carol.get(address).data
        seen += [result["details"]["number"] for result in page["results"]]
        address = page["next"]
    assert seen == [4, 3, 2, 1, 0]


@pytest.mark.parametrize("cursor", ["cD15ZXN0ZXJkYXk=", "cD0yMDI2LTk5LTk5KzI1JTNBMDA="])
def test_a_cursor_of_somebody_elses_making_is_refused(carol: APIClient, cursor: str) -> None:
    assert carol.get(ADDRESS, {"cursor": cursor}).status_code == 404


def test_an_entry_names_the_token_that_was_used(cast: Cast) -> None:
    _, token = Token.objects.create(cast.carol)
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {token}")
    client.patch("/api/v1/projects/talk/", {"keep": 2})
    made = AuditEntry.objects.get(action="project.changed")
    assert (made.actor, made.via, len(made.token)) == ("carol", "rest", audit.DIGEST_SHOWN)
    assert made.details == {"changed": {"keep": [3, 2]}}
    assert made.token not in token
