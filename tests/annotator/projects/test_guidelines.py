"""Which version of the guidelines somebody has read."""

import pytest
from django.test import Client

from annotator.models import Membership, Project
from annotator.projects.guidelines import acknowledge, publish_guidelines
from tests.conftest import Cast

PAGE = "/projects/talk/guidelines/"


@pytest.fixture
def alice(project: Project, cast: Cast) -> Membership:
    publish_guidelines(project, "Be fair.")
    return cast.alice.memberships.select_related("project").get()


def test_the_version_that_was_read_is_acknowledged(alice: Membership, client: Client) -> None:
    client.force_login(alice.user)
    assert b'name="version" value="1"' in client.get(PAGE).content
    publish_guidelines(alice.project, "Be fair, and quick.")
    answer = client.post(PAGE, {"version": "1"}, follow=True)
    alice.refresh_from_db()
    assert alice.acknowledged_version == 1
    assert b"Be fair, and quick." in answer.content


@pytest.mark.parametrize(("sent", "stored"), [({}, 0), ({"version": "x"}, 0), ({"version": "9"}, 1)])
def test_nobody_acknowledges_what_there_is_not(
    alice: Membership, client: Client, sent: dict[str, str], stored: int
) -> None:
    client.force_login(alice.user)
    client.post(PAGE, sent)
    alice.refresh_from_db()
    assert alice.acknowledged_version == stored


def test_an_earlier_version_takes_nothing_back(alice: Membership) -> None:
    publish_guidelines(alice.project, "Be fair, and quick.")
    for version in (2, 1):
        acknowledge(alice, version=version)
    alice.refresh_from_db()
    assert alice.acknowledged_version == 2
