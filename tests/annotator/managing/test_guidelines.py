"""Which version of the guidelines somebody has read."""

import pytest
from django.test import Client

from annotator.managing.guidelines import acknowledge, publish_guidelines
from annotator.models import Guideline, Membership, Project
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


def test_a_new_version_shows_what_changed_since_the_one_that_was_read(alice: Membership, client: Client) -> None:
    for number, text in enumerate(["Rate.\nBe kind.", "Rate.\nBe fair.\nBe brief."], 2):
        Guideline.objects.create(project=alice.project, version=number, text=text)
    client.force_login(alice.user)
    page = "/projects/talk/guidelines/"
    assert "What has changed" not in client.get(page).content.decode()
    Membership.objects.update(acknowledged_version=2)
    shown = client.get(page).content.decode()
    assert "What has changed since version 2, which you have read" in shown
    for line in ("Added: </span>Be fair.", "Added: </span>Be brief.", "Removed: </span>Be kind."):
        assert line in shown
    Membership.objects.update(acknowledged_version=3)
    assert "What has changed" not in client.get(page).content.decode()
