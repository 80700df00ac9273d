"""Nobody becomes a manager unasked or stays staff by accident, and no project loses its last manager."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from rest_framework.test import APIClient

from annotator.models import Membership, Project, Role, User
from tests.builders import make_project, make_user
from tests.conftest import As, Cast

PASSWORD = "tall order 98 x"
PEOPLE = "/api/v1/projects/talk/members/"


def staff(name: str) -> bool:
    return User.objects.get(username=name).is_staff


# An offer ----------------------------------------------------------------------------------------------------


def test_an_account_is_asked_before_it_manages(project: Project, carol: APIClient) -> None:
    body = carol.post(PEOPLE, {"username": "dave", "role": "manager"}).json()
    assert (body["role"], body["offered_role"], body["accepted"]) == ("annotator", "manager", False)
    assert not staff("dave")
    assert not Membership.objects.filter(user__username="dave", role=Role.MANAGER).exists()


def test_who_accepts_manages(project: Project, cast: Cast, carol: APIClient, client: Client) -> None:
    carol.post(PEOPLE, {"username": "dave", "role": "manager"})
    client.force_login(cast.dave)
    assert "You have been asked to manage Talk" in client.get("/").content.decode()
    assert client.post("/projects/talk/offer/", {"answer": "accept"}).status_code == 302
    assert Membership.objects.get(user=cast.dave).role == Role.MANAGER
    assert staff("dave")
    assert "You have been asked" not in client.get("/").content.decode()


def test_who_declines_stays_what_they_are(project: Project, cast: Cast, carol: APIClient, as_user: As) -> None:
    carol.post(PEOPLE, {"username": "alice", "role": "manager"})
    body = as_user(cast.alice).post("/api/v1/projects/talk/offer/", {"accept": False}).json()
    assert (body["role"], body["offered_role"], staff("alice")) == ("annotator", "", False)
    assert as_user(cast.alice).post("/api/v1/projects/talk/offer/", {"accept": True}).status_code == 409


def test_nobody_accepts_for_somebody_else(project: Project, carol: APIClient, cast: Cast, as_user: As) -> None:
    carol.post(PEOPLE, {"username": "dave", "role": "manager"})
    assert as_user(cast.bob).post("/api/v1/projects/talk/offer/", {"accept": True}).status_code == 409
    assert carol.post("/api/v1/projects/talk/offer/", {"accept": True}).status_code == 409
    assert not staff("dave")


def test_an_offer_can_be_taken_back(project: Project, cast: Cast, carol: APIClient, as_user: As) -> None:
    carol.post(PEOPLE, {"username": "dave", "role": "manager"})
    assert carol.post(PEOPLE, {"username": "dave", "role": "annotator"}).json()["accepted"]
    assert as_user(cast.dave).post("/api/v1/projects/talk/offer/", {"accept": True}).status_code == 409


def test_an_account_made_for_it_manages_at_once(project: Project, carol: APIClient) -> None:
    body = carol.post(PEOPLE, {"username": "lead", "role": "manager", "password": PASSWORD}).json()
    assert (body["role"], body["accepted"], staff("lead")) == ("manager", True, True)


# Staff follows roles -----------------------------------------------------------------------------------------


@pytest.fixture
def lead(carol: APIClient, project: Project) -> User:
    carol.post(PEOPLE, {"username": "lead", "role": "manager", "password": PASSWORD})
    return User.objects.get(username="lead")


def test_who_is_demoted_leaves_the_admin(lead: User, carol: APIClient, client: Client) -> None:
    assert carol.post(PEOPLE, {"username": "lead", "role": "annotator"}).json()["role"] == "annotator"
    assert not staff("lead")
    client.force_login(User.objects.get(username="lead"))
    assert client.get("/admin/").status_code == 302


def test_who_is_removed_leaves_the_admin(lead: User, carol: APIClient) -> None:
    assert carol.delete(f"{PEOPLE}lead/").status_code == 204
    assert not staff("lead")


def test_who_manages_another_project_stays(lead: User, carol: APIClient) -> None:
    Membership.objects.create(project=make_project("other"), user=lead, role=Role.MANAGER)
    carol.delete(f"{PEOPLE}lead/")
    assert staff("lead")


def test_who_was_made_staff_by_hand_stays(project: Project, cast: Cast, carol: APIClient, as_user: As) -> None:
    owner = make_user("owner", is_staff=True)
    carol.post(PEOPLE, {"username": "owner", "role": "manager"})
    as_user(owner).post("/api/v1/projects/talk/offer/", {"accept": True})
    carol.post(PEOPLE, {"username": "owner", "role": "annotator"})
    assert staff("owner")


def test_an_administrators_word_outlives_the_role(lead: User, carol: APIClient, client: Client) -> None:
    root = make_user("root", is_superuser=True, is_staff=True)
    client.force_login(root)
    address = f"/admin/annotator/user/{lead.pk}/change/"
    dates = {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    form = {"username": "lead", "is_active": "on", "layout": "below", "keys": "{}"} | dates
    assert client.post(address, form).status_code == 302
    assert client.post(address, form | {"is_staff": "on"}).status_code == 302
    carol.delete(f"{PEOPLE}lead/")
    assert staff("lead")


# The last manager --------------------------------------------------------------------------------------------


def test_rest_neither_demotes_nor_removes_the_last_manager(project: Project, carol: APIClient) -> None:
    demoted = carol.post(PEOPLE, {"username": "carol", "role": "annotator"})
    removed = carol.delete(f"{PEOPLE}carol/")
    assert [(answer.status_code, answer.json()["code"]) for answer in (demoted, removed)] == [(409, "last_manager")] * 2


@pytest.mark.parametrize("door", ["delete", "delete_selected"])
def test_the_account_of_the_last_manager_is_not_deleted(
    project: Project, cast: Cast, client: Client, door: str
) -> None:
    client.force_login(make_user("root", is_superuser=True, is_staff=True))
    if door == "delete":
        said = client.post(f"/admin/annotator/user/{cast.carol.pk}/delete/", {"post": "yes"})
    else:
        form = {"action": door, "_selected_action": [cast.carol.pk], "post": "yes"}
        said = client.post("/admin/annotator/user/", form)
    assert "carol is the last manager of Talk" in said.content.decode()
    assert User.objects.filter(username="carol").exists()


@pytest.mark.parametrize("others", [False, True])
def test_the_account_of_the_last_manager_is_not_closed(
    project: Project, cast: Cast, client: Client, others: bool
) -> None:
    Membership.objects.filter(user=cast.bob).update(role=Role.MANAGER)
    User.objects.filter(pk=cast.bob.pk).update(is_active=others)
    client.force_login(make_user("root", is_superuser=True, is_staff=True))
    form = {"username": "carol", "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    said = client.post(f"/admin/annotator/user/{cast.carol.pk}/change/", form).content.decode()
    cast.carol.refresh_from_db()
    assert ("carol is the last manager of Talk" in said, cast.carol.is_active) == (not others, not others)


# At the same time ----------------------------------------------------------------------------------------------


def at_once(times: int, call: Callable[[int], Any]) -> list[int]:
    """The status codes of so many calls, each in a thread with a connection of its own."""

    def alone(number: int) -> int:
        try:
            return int(call(number).status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(alone, range(times)))


@pytest.mark.django_db(transaction=True)
def test_one_member_made_twelve_times_at_once_is_one(project: Project, cast: Cast, as_user: As) -> None:
    sent = {"username": "frank", "role": "annotator", "password": PASSWORD}
    answers = at_once(12, lambda number: as_user(cast.carol).post(PEOPLE, sent))
    assert sorted(set(answers)) in ([200, 201], [201])
    assert answers.count(201) == 1
    assert Membership.objects.filter(user__username="frank").count() == 1


@pytest.mark.django_db(transaction=True)
def test_one_project_made_twelve_times_at_once_is_one(project: Project, cast: Cast, as_user: As) -> None:
    sent = {"slug": "new", "name": "New", "guidelines": "Be fair."}
    answers = at_once(12, lambda number: as_user(cast.carol).post("/api/v1/projects/", sent))
    assert sorted(answers) == [201] + [400] * 11
    assert Project.objects.filter(slug="new").count() == 1


@pytest.mark.django_db(transaction=True)
def test_guidelines_published_at_once_have_numbers_of_their_own(project: Project, cast: Cast, as_user: As) -> None:
    def publish(number: int) -> Any:
        return as_user(cast.carol).patch("/api/v1/projects/talk/", {"guidelines": f"Text {number}."})

    assert at_once(6, publish) == [200] * 6
    assert sorted(project.guidelines.values_list("version", flat=True)) == [1, 2, 3, 4, 5, 6]


@pytest.mark.django_db(transaction=True)
def test_two_managers_who_dismiss_each_other_leave_one(project: Project, cast: Cast, as_user: As) -> None:
    Membership.objects.filter(user=cast.bob).update(role=Role.MANAGER)
    pairs = [(cast.bob, "carol"), (cast.carol, "bob")]
    answers = at_once(2, lambda number: as_user(pairs[number][0]).delete(f"{PEOPLE}{pairs[number][1]}/"))
    assert answers.count(204) == 1
    assert Membership.objects.filter(role=Role.MANAGER).count() == 1


@pytest.mark.django_db(transaction=True)
def test_who_is_demoted_twice_at_once_leaves_the_admin(project: Project, cast: Cast, as_user: As) -> None:
    slugs = [project.slug, *(make_project(f"other-{number}").slug for number in range(3))]
    for slug in slugs:
        Membership.objects.update_or_create(
            project=Project.objects.get(slug=slug), user=cast.bob, defaults={"role": Role.MANAGER}
        )
    User.objects.filter(pk=cast.bob.pk).update(is_staff=True, staff_by_role=True)
    root = as_user(make_user("root", is_superuser=True))
    Membership.objects.bulk_create(
        Membership(project=owned, user=cast.erin, role=Role.MANAGER) for owned in Project.objects.exclude(slug="talk")
    )
    at_once(4, lambda number: root.delete(f"/api/v1/projects/{slugs[number]}/members/bob/"))
    assert not staff("bob")
