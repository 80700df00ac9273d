"""Invitations, members and guidelines over REST."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from annotator.models import Guideline, Invitation, Membership, PasswordLink, Project, Role, User
from tests.builders import make_member, make_project, make_user
from tests.conftest import As, Cast

TALK, ACCEPT = "/api/v1/projects/talk", "/api/v1/invitations/accept/"
PASSWORD = "tall order 98 x"


def test_a_link_is_answered_once(project: Project, carol: APIClient) -> None:
    made = carol.post(f"{TALK}/invitations/", {"role": "reviewer", "quota": 5, "languages": ["en"], "places": 2}).json()
    assert made["link"].endswith(f"/invitation/{made['token']}/")
    (listed,) = carol.get(f"{TALK}/invitations/").json()["results"]
    assert (listed["state"], listed["role"], listed["taken"], listed["places"]) == ("open", "reviewer", 0, 2)
    assert made["token"] not in str(listed)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"role": "owner"}, "role"),
        ({"days": 0}, "days"),
        ({"days": "7"}, "days"),
        ({"places": 10**30}, "places"),
        ({"role": "manager", "places": 2}, "places"),
        ({"languages": ["English"]}, "languages"),
        ({"email": "nobody"}, "email"),
        ({"quota": -1}, "quota"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_a_wrong_wish_is_refused(project: Project, carol: APIClient, body: dict[str, Any], field: str) -> None:
    answer = carol.post(f"{TALK}/invitations/", body)
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [field])
    assert not Invitation.objects.exists()


def test_an_account_is_made_by_a_link(project: Project, carol: APIClient) -> None:
    token = carol.post(f"{TALK}/invitations/").json()["token"]
    body = {"token": token, "username": "frank", "password": PASSWORD}
    assert APIClient().post(ACCEPT, body).json()["role"] == "annotator"
    again = APIClient().post(ACCEPT, body | {"username": "grete"})
    assert (again.status_code, again.json()["code"]) == (410, "invitation_ended")
    (listed,) = carol.get(f"{TALK}/invitations/").json()["results"]
    assert (listed["state"], listed["joined"]) == ("used", ["frank"])


def test_an_account_joins_by_a_link(project: Project, cast: Cast, carol: APIClient, as_user: As) -> None:
    token = carol.post(f"{TALK}/invitations/", {"quota": 3}).json()["token"]
    assert as_user(cast.dave).post(ACCEPT, {"token": token}).json()["project"] == "talk"
    assert Membership.objects.get(user=cast.dave).quota == 3


@pytest.mark.parametrize(
    "body", [{}, {"token": "x"}, {"token": "x", "username": "frank"}, {"token": 5, "role": "manager"}]
)
def test_a_stranger_needs_a_name_and_a_password(project: Project, body: dict[str, Any]) -> None:
    assert APIClient().post(ACCEPT, body).status_code == 400


def test_a_name_that_is_taken_opens_no_account(project: Project, cast: Cast, carol: APIClient) -> None:
    token = carol.post(f"{TALK}/invitations/", {"role": "manager"}).json()["token"]
    answer = APIClient().post(ACCEPT, {"token": token, "username": "dave", "password": PASSWORD})
    assert (answer.status_code, answer.json()["code"]) == (400, "refused_name")
    assert not Membership.objects.filter(user=cast.dave).exists()
    assert not User.objects.get(username="dave").check_password(PASSWORD)


def test_who_has_an_account_makes_no_other(project: Project, cast: Cast, carol: APIClient, as_user: As) -> None:
    token = carol.post(f"{TALK}/invitations/").json()["token"]
    body = {"token": token, "username": "frank", "password": PASSWORD}
    assert as_user(cast.dave).post(ACCEPT, body).status_code == 400


def test_a_link_is_revoked_by_its_project_alone(project: Project, cast: Cast, carol: APIClient, as_user: As) -> None:
    lead = make_member(make_project("other"), make_user("lead"), role=Role.MANAGER).user
    number = carol.post(f"{TALK}/invitations/").json()["id"]
    assert as_user(lead).delete(f"/api/v1/projects/other/invitations/{number}/").status_code == 404
    assert Invitation.objects.get().revoked_at is None
    assert carol.delete(f"{TALK}/invitations/{number}/").status_code == 204
    assert carol.get(f"{TALK}/invitations/").json()["results"][0]["state"] == "revoked"


# Members ---------------------------------------------------------------------------------------------------


def test_a_member_is_changed_in_part(project: Project, carol: APIClient) -> None:
    assert carol.patch(f"{TALK}/members/alice/", {"quota": 5, "languages": ["en"]}).json()["quota"] == 5
    body = carol.patch(f"{TALK}/members/alice/", {"role": "reviewer"}).json()
    assert (body["role"], body["quota"], body["languages"]) == ("reviewer", 5, ["en"])
    assert carol.patch(f"{TALK}/members/dave/", {"quota": 5}).status_code == 404


def test_all_of_a_change_is_made_or_nothing(project: Project, carol: APIClient) -> None:
    assert carol.patch(f"{TALK}/members/alice/", {"role": "reviewer", "languages": ["English"]}).status_code == 400
    assert Membership.objects.get(user__username="alice").role == Role.ANNOTATOR


def test_what_a_manager_s_buttons_do(project: Project, carol: APIClient) -> None:
    assert carol.post(f"{TALK}/members/alice/pause/").json()["pause_reason"] == "manager"
    assert carol.post(f"{TALK}/members/alice/resume/").json()["paused_at"] is None
    assert carol.post(f"{TALK}/members/alice/another-try/").json()["extra_tries"] == 1
    assert carol.post(f"{TALK}/members/alice/qualify/").json()["qualified_at"]
    assert carol.post(f"{TALK}/members/dave/pause/").status_code == 404


def test_a_link_to_a_new_password(project: Project, cast: Cast, carol: APIClient) -> None:
    assert "/new-password/" in carol.post(f"{TALK}/members/alice/password-link/").json()["link"]
    assert PasswordLink.objects.get().account == cast.alice
    answer = carol.post(f"{TALK}/members/carol/password-link/")
    assert (answer.status_code, answer.json()["code"]) == (403, "for_administrators")


# Guidelines ------------------------------------------------------------------------------------------------


def test_guidelines_are_published_and_read(project: Project, cast: Cast, carol: APIClient, as_user: As) -> None:
    answers = [carol.post(f"{TALK}/guidelines/", {"text": words}) for words in ("One.", "One.", "Two.")]
    assert [(answer.status_code, answer.json()["version"]) for answer in answers] == [(201, 1), (200, 1), (201, 2)]
    rows = as_user(cast.alice).get(f"{TALK}/guidelines/").json()["results"]
    assert [row["text"] for row in rows] == ["One.", "Two."]
    assert as_user(cast.alice).post(f"{TALK}/guidelines/", {"text": "Mine."}).status_code == 403


def test_a_newer_version_is_not_replaced_unread(project: Project, carol: APIClient) -> None:
    carol.post(f"{TALK}/guidelines/", {"text": "One."})
    answer = carol.post(f"{TALK}/guidelines/", {"text": "Two.", "based_on": 0})
    assert (answer.status_code, answer.json()["code"]) == (409, "newer_guidelines")
    assert carol.post(f"{TALK}/guidelines/", {"text": "Two.", "based_on": 1}).status_code == 201


@pytest.mark.parametrize("body", [{}, {"text": " "}, {"text": 5.5, "x": 1}, {"text": "x" * 200_001}, {"text": "a\0"}])
def test_a_wrong_text_is_refused(project: Project, carol: APIClient, body: dict[str, Any]) -> None:
    assert carol.post(f"{TALK}/guidelines/", body).status_code == 400
    assert not Guideline.objects.exists()
