"""Guessing links, and two people at the last place of one."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from rest_framework.test import APIClient

from annotator.infrastructure.db.clock import database_now
from annotator.managing import invitations, password_links
from annotator.managing.invitations import InvitationInput
from annotator.models import AuditEntry, Invitation, Membership, PasswordLink, Project, User
from tests.conftest import Cast

PASSWORD = "tall order 98 x"
OWN, OTHER = "192.0.2.1", "198.51.100.9"


def secret_of(project: Project, cast: Cast, **wish: Any) -> str:
    return invitations.invite(project, InvitationInput(**wish), by=cast.carol, now=database_now())[1]


def joined(secret: str, name: str) -> int:
    form = {"username": name, "password": PASSWORD, "again": PASSWORD}
    return Client().post(f"/invitation/{secret}/", form).status_code


# Guesses ---------------------------------------------------------------------------------------------------


def by_page(secret: str, address: str = OWN) -> Any:
    return Client().get(f"/invitation/{secret}/", REMOTE_ADDR=address)


def by_form(secret: str, address: str = OWN) -> Any:
    form = {"username": "frank", "password": PASSWORD, "again": PASSWORD}
    return Client().post(f"/invitation/{secret}/", form, REMOTE_ADDR=address)


def by_rest(secret: str, address: str = OWN) -> Any:
    body = {"token": secret, "username": "frank", "password": PASSWORD}
    return APIClient().post("/api/v1/invitations/accept/", body, format="json", REMOTE_ADDR=address)


def by_password_page(secret: str, address: str = OWN) -> Any:
    return Client().get(f"/new-password/{secret}/", REMOTE_ADDR=address)


@pytest.mark.parametrize("door", [by_page, by_form, by_rest, by_password_page])
def test_guesses_are_limited_at_every_door(
    project: Project, cast: Cast, settings: Any, door: Callable[..., Any]
) -> None:
    settings.LOGIN_FAILURES = 1
    secret = secret_of(project, cast)
    assert {door(f"guess-{number}").status_code for number in range(20)} == {404}
    refused = door(secret)
    assert (refused.status_code, int(refused.headers["Retry-After"]) > 0) == (429, True)
    assert not User.objects.filter(username="frank").exists()
    assert AuditEntry.objects.filter(action="login.locked").count() == 1
    assert by_page(secret, OTHER).status_code == 200, "nobody else waits"


def test_right_links_are_not_counted(project: Project, cast: Cast, settings: Any) -> None:
    settings.LOGIN_FAILURES = 1
    secret = secret_of(project, cast)
    assert {by_page(secret).status_code for _ in range(25)} == {200}


@pytest.mark.parametrize("secret", ["%00", "%ED%A0%80", "a" * 5_000, "..%2f..", "'; DROP TABLE--"])
def test_hostile_secrets_are_nobodys(project: Project, secret: str) -> None:
    for page in ("invitation", "new-password"):
        assert Client().get(f"/{page}/{secret}/").status_code in (400, 404)


def test_a_session_does_not_carry_over(project: Project, cast: Cast) -> None:
    """Whoever planted a session in the browser before must not be in the one of the new account."""
    browser = Client()
    browser.get("/login/")
    before = browser.session.session_key
    browser.post(
        f"/invitation/{secret_of(project, cast)}/", {"username": "frank", "password": PASSWORD, "again": PASSWORD}
    )
    assert browser.session.session_key != before


# At once ---------------------------------------------------------------------------------------------------


def at_once(times: int, ask: Callable[[int], Any]) -> list[Any]:
    barrier = Barrier(times)

    def alone(number: int) -> Any:
        try:
            barrier.wait()
            return ask(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(alone, range(times)))


@pytest.mark.django_db(transaction=True)
def test_the_last_place_goes_to_one_of_eight(project: Project, cast: Cast) -> None:
    secret = secret_of(project, cast)
    names = ["frank", "grete", "heinz", "ilse", "jakob", "klara", "ludwig", "marta"]
    answers = at_once(8, lambda number: joined(secret, names[number]))
    assert sorted(answers) == [302] + [410] * 7
    assert User.objects.filter(username__in=names).count() == 1
    assert Membership.objects.filter(user__username__in=names).count() == 1
    assert Invitation.objects.get().taken == 1


@pytest.mark.django_db(transaction=True)
def test_three_places_go_to_three_of_eight(project: Project, cast: Cast) -> None:
    secret = secret_of(project, cast, places=3)
    names = ["frank", "grete", "heinz", "ilse", "jakob", "klara", "ludwig", "marta"]
    answers = at_once(8, lambda number: joined(secret, names[number]))
    assert sorted(answers) == [302] * 3 + [410] * 5


@pytest.mark.django_db(transaction=True)
def test_one_name_chosen_by_four_is_one_account(project: Project, cast: Cast) -> None:
    secret = secret_of(project, cast, places=4)
    answers = at_once(4, lambda _number: joined(secret, "frank"))
    assert sorted(answers) == [302, 422, 422, 422]
    assert Invitation.objects.get().taken == 1


@pytest.mark.django_db(transaction=True)
def test_one_person_takes_one_place(project: Project, cast: Cast) -> None:
    secret = secret_of(project, cast, places=4)

    def accepted(_number: int) -> str:
        try:
            invitations.accept(secret, cast.dave, now=database_now())
        except invitations.AlreadyMember:
            return "already"
        return "joined"

    assert sorted(at_once(4, accepted)) == ["already"] * 3 + ["joined"]
    assert Invitation.objects.get().taken == 1


@pytest.mark.django_db(transaction=True)
def test_joining_and_admitting_at_once_do_not_deadlock(project: Project, cast: Cast) -> None:
    secret = secret_of(project, cast, places=8)
    carol = APIClient()
    carol.force_authenticate(cast.carol)

    def come_in(number: int) -> int:
        if number % 2:
            return joined(secret, f"joins{number}")
        body = {"username": f"added{number}", "password": PASSWORD}
        return int(carol.post("/api/v1/projects/talk/members/", body, format="json").status_code)

    assert sorted(at_once(8, come_in)) == [201] * 4 + [302] * 4


@pytest.mark.django_db(transaction=True)
def test_a_link_to_a_new_password_is_used_by_one(project: Project, cast: Cast) -> None:
    secret = password_links.make(cast.alice, by=cast.carol, project=project, now=database_now())[1]

    def chosen(number: int) -> int:
        form = {"password": f"{PASSWORD} {number}", "again": f"{PASSWORD} {number}"}
        return Client().post(f"/new-password/{secret}/", form).status_code

    assert sorted(at_once(4, chosen)) == [302, 404, 404, 404]
    assert not PasswordLink.objects.exists()
