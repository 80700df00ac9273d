"""A password that somebody else chose opens nothing on the pages but the page that asks for another one."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from annotator.management import demo
from annotator.models import User
from tests.builders import NOW, make_project
from tests.conftest import Cast

GIVEN, OWN = "as the manager said", "as I like it, mostly"


@pytest.fixture
def root(cast: Cast) -> Client:
    """carol's, who manages and may do everything in the admin."""
    User.objects.filter(pk=cast.carol.pk).update(is_staff=True, is_superuser=True)
    browser = Client()
    browser.force_login(User.objects.get(pk=cast.carol.pk))
    return browser


def invited_by_rest(root: Client) -> None:
    api = APIClient()
    api.force_authenticate(User.objects.get(username="carol"))
    answer = api.post("/api/v1/projects/talk/members/", {"username": "frank", "password": GIVEN})
    assert answer.status_code == 201, answer.json()


def made_by_the_admin(root: Client) -> None:
    sent = {"username": "frank", "password1": GIVEN, "password2": GIVEN, "usable_password": "true"}
    assert root.post("/admin/annotator/user/add/", sent).status_code == 302


def reset_by_the_admin(root: Client) -> None:
    frank = User.objects.create_user("frank", password=OWN)
    sent = {"password1": GIVEN, "password2": GIVEN, "usable_password": "true"}
    assert root.post(f"/admin/annotator/user/{frank.pk}/password/", sent).status_code == 302


def logged_in(name: str = "frank", password: str = GIVEN) -> Client:
    browser = Client()
    assert browser.post("/login/", {"username": name, "password": password}).status_code == 302
    return browser


def change(browser: Client, new: str = OWN) -> Any:
    return browser.post("/password/", {"old_password": GIVEN, "new_password1": new, "new_password2": new})


@pytest.mark.parametrize("given", [invited_by_rest, made_by_the_admin, reset_by_the_admin])
def test_the_first_login_asks_for_another_password(root: Client, given: Callable[[Client], None]) -> None:
    given(root)
    frank = logged_in()
    for page in ("/", "/settings/", "/mine/", "/projects/talk/annotate/", "/admin/", "/settings/tokens/"):
        assert frank.get(page).headers.get("Location") == "/password/", page
    assert "Somebody else chose your password" in frank.get("/password/").content.decode()
    assert change(frank).headers["Location"] == "/"
    assert frank.get("/mine/").status_code == 200


def test_the_same_password_again_is_no_other_password(root: Client) -> None:
    invited_by_rest(root)
    frank = logged_in()
    assert change(frank, GIVEN).status_code == 422
    assert frank.get("/").headers["Location"] == "/password/"


def test_nothing_is_done_before_it(root: Client) -> None:
    invited_by_rest(root)
    frank = logged_in()
    assert frank.post("/layout/", {"layout": "below"}).headers["Location"] == "/password/"
    assert User.objects.get(username="frank").layout == "beside"
    assert frank.post("/logout/").headers["Location"] == "/login/"


def test_htmx_loads_the_page_as_a_whole(root: Client) -> None:
    invited_by_rest(root)
    answer = logged_in().get("/projects/talk/annotate/", headers={"hx-request": "true"})
    assert answer.headers["HX-Redirect"] == "/password/"


def test_scripts_go_on(root: Client) -> None:
    invited_by_rest(root)
    sent = {"username": "frank", "password": GIVEN}
    answer = APIClient().post("/api/v1/token/", sent)
    headers = {"authorization": f"Token {answer.json()['token']}"}
    assert APIClient().post("/api/v1/projects/talk/next/", headers=headers).status_code == 200


def test_who_changes_their_own_password_in_the_admin_is_not_asked_again(root: Client) -> None:
    carol = User.objects.get(username="carol")
    sent = {"password1": OWN, "password2": OWN, "usable_password": "true"}
    root.post(f"/admin/annotator/user/{carol.pk}/password/", sent)
    assert root.get("/mine/").status_code == 200


def test_the_demo_s_accounts_are_not_asked(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMO_PASSWORD", "short")
    make_project("demo")
    demo.seed(now=NOW)
    assert logged_in("alice", "short").get("/mine/").status_code == 200
