"""Accounts that people or exports would take for somebody else's."""

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from rest_framework.test import APIClient

from annotator.models import User
from tests.conftest import Cast

PASSWORD = "tall order 92"
LIKE_ALICE = ["Alice", "ALICE", "аlice", "alicе", "ａlice", "a1ice", "aIice"]
RESERVED = ["imported", "imported-3", "Imported:x", "simulated-1", "Simulated-9", "simuIated-2"]


def invited(cast: Cast, name: str) -> tuple[int, dict[str, str]]:
    api = APIClient()
    api.force_authenticate(cast.carol)
    answer = api.post("/api/v1/projects/talk/members/", {"username": name, "password": PASSWORD})
    return answer.status_code, answer.json()


@pytest.mark.parametrize("name", [*LIKE_ALICE, *RESERVED])
def test_it_is_refused_over_rest_with_a_sentence(cast: Cast, name: str) -> None:
    status, answer = invited(cast, name)
    assert (status, answer["code"]) == (400, "refused_name")
    assert answer["detail"].endswith(".")
    assert not User.objects.filter(username=name).exists()


@pytest.mark.parametrize("name", ["аlice", "Alice", "simulated-1"])
def test_it_is_refused_in_the_admin(cast: Cast, client: Client, name: str) -> None:
    client.force_login(User.objects.create(username="root", is_staff=True, is_superuser=True))
    made = {"username": name, "password1": PASSWORD, "password2": PASSWORD, "usable_password": "true"}
    assert client.post("/admin/annotator/user/add/", made).status_code == 200
    assert not User.objects.filter(username=name).exists()


def test_it_is_refused_on_the_command_line(cast: Cast) -> None:
    with pytest.raises(CommandError, match="looks like that of another account"):
        call_command("createsuperuser", interactive=False, username="Carol", email="c@example.org")


@pytest.mark.parametrize("name", ["rosé", "alicia", "ali", "Анна", "花子", "user-2", "jürgen", "imports"])
def test_ordinary_names_pass(cast: Cast, name: str) -> None:
    assert invited(cast, name)[0] == 201


@pytest.mark.parametrize(("one", "other"), [("сосо", "coco"), ("ivan", "Ivan"), ("barney", "bamey"), ("r0b", "rob")])
def test_two_that_look_alike_cannot_both_be_made(cast: Cast, one: str, other: str) -> None:
    assert invited(cast, one)[0] == 201
    assert invited(cast, other)[0] == 400


def test_an_account_with_a_name_of_two_scripts_can_be_saved(cast: Cast, client: Client) -> None:
    odd = User.objects.create(username="bоb", password="!")
    client.force_login(User.objects.create(username="root", is_staff=True, is_superuser=True))
    sent = {"username": odd.username, "first_name": "Bob", "date_joined_0": "2026-01-31", "date_joined_1": "12:00:00"}
    assert client.post(f"/admin/annotator/user/{odd.pk}/change/", sent).status_code == 302


def test_accounts_that_are_there_stay_as_they_are(cast: Cast, client: Client) -> None:
    User.objects.create(username="Alice", password="!")
    assert invited(cast, "Alice")[0] == 201
    client.force_login(User.objects.create(username="root", is_staff=True, is_superuser=True))
    joined = {"date_joined_0": "2026-01-31", "date_joined_1": "12:00:00", "is_active": "on"}
    answer = client.post(f"/admin/annotator/user/{cast.alice.pk}/change/", {"username": "alice", **joined})
    assert answer.status_code == 302
