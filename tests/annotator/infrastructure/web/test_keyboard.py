"""Own settings: which keys can be chosen, and where the responses stand."""

import pytest
from django.test import Client

from annotator.infrastructure.web.keyboard import ACTIONS, keys_of
from annotator.pages.account.settings import KeysForm
from tests.conftest import Cast

START = {name: action.key for name, action in ACTIONS.items()}


def test_every_action_starts_with_a_key_of_its_own() -> None:
    assert len(set(START.values())) == len(ACTIONS)


def test_own_keys_stand_in_for_the_first_ones(alice_page: Client, cast: Cast) -> None:
    alice_page.post("/settings/", START | {"skip": "Q"})
    cast.alice.refresh_from_db()
    assert cast.alice.keys == {"skip": "q"}
    assert keys_of(cast.alice) == START | {"skip": "q"}


def test_the_first_keys_come_back(alice_page: Client, cast: Cast) -> None:
    alice_page.post("/settings/", START | {"skip": "q"})
    alice_page.post("/settings/", {"reset": "1"})
    cast.alice.refresh_from_db()
    assert cast.alice.keys == {}


@pytest.mark.parametrize("key", ["1", "9", "0", "٣", " ", "", "Enter", "Escape", "ab", "\t", "\u200b", "İ"])
def test_some_keys_stay_what_they_are(key: str) -> None:
    form = KeysForm(START | {"skip": key})
    assert set(form.errors) == {"skip"}


def test_one_key_stands_for_one_thing(alice_page: Client, cast: Cast) -> None:
    answer = alice_page.post("/settings/", START | {"skip": "R"})
    assert answer.status_code == 422
    assert "R is also the key for “Report unsafe content”" in answer.content.decode()
    cast.alice.refresh_from_db()
    assert cast.alice.keys == {}


def test_two_keys_can_change_places() -> None:
    assert KeysForm(START | {"skip": "r", "report": "s"}).is_valid()


def test_the_layout_is_remembered(alice_page: Client, cast: Cast) -> None:
    answer = alice_page.post("/layout/", {"layout": "below", "next": "/projects/talk/annotate/"})
    assert answer.headers["Location"] == "/projects/talk/annotate/"
    cast.alice.refresh_from_db()
    assert cast.alice.layout == "below"


def test_an_unknown_layout_changes_nothing(alice_page: Client, cast: Cast) -> None:
    alice_page.post("/layout/", {"layout": "upside down"})
    cast.alice.refresh_from_db()
    assert cast.alice.layout == "beside"


@pytest.mark.parametrize("address", ["https://example.org/", "//example.org", "javascript:alert(1)"])
def test_settings_lead_back_to_our_own_pages_only(alice_page: Client, address: str) -> None:
    assert alice_page.post("/layout/", {"layout": "beside", "next": address}).headers["Location"] == "/"
    assert "Back to the previous page" not in alice_page.get("/settings/", {"next": address}).content.decode()
