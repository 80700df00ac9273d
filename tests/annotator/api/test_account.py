"""Tokens and the caller's own account."""

from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from annotator.models import Project, Token, User
from tests.builders import make_user, pseudonym
from tests.conftest import Cast

PASSWORD = " correct horse battery "


@pytest.fixture(autouse=True)
def _quick_logins(settings: LazySettings) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def alice(cast: Cast) -> User:
    cast.alice.set_password(PASSWORD)
    cast.alice.save()
    return cast.alice


def token_of(user: User, **fields: timedelta) -> str:
    return str(Token.objects.create(user, **fields)[1])


def me(**headers: str) -> int:
    return int(APIClient().get("/api/v1/me/", headers=headers).status_code)


def ask(username: object, password: object) -> tuple[int, dict[str, str]]:
    answer = APIClient().post("/api/v1/token/", {"username": username, "password": password}, format="json")
    return answer.status_code, answer.json()


def test_a_password_buys_a_token(alice: User) -> None:
    status, answer = ask("alice", PASSWORD)
    assert (status, set(answer)) == (200, {"token", "expiry"})
    assert me(authorization=f"Token {answer['token']}") == 200


def test_the_token_is_stored_hashed(alice: User) -> None:
    _, answer = ask("alice", PASSWORD)
    assert answer["token"] not in str(Token.objects.values().get())


@pytest.mark.parametrize(("name", "password"), [("alice", "wrong"), ("alice", PASSWORD.strip()), ("nobody", PASSWORD)])
def test_a_wrong_name_or_password_is_401(alice: User, name: str, password: str) -> None:
    status, answer = ask(name, password)
    assert (status, answer["code"]) == (401, "authentication_failed")
    assert not Token.objects.exists()


def test_a_closed_account_gets_no_token(alice: User) -> None:
    User.objects.update(is_active=False)
    assert ask("alice", PASSWORD)[0] == 401


@pytest.mark.parametrize(("name", "password"), [("", "x"), (None, "x"), ("alice", ["x"]), ({}, "x"), ("a\x00", "x")])
def test_a_login_that_is_no_text_is_400(alice: User, name: object, password: object) -> None:
    assert ask(name, password)[0] == 400


def test_guessing_is_slowed_down(alice: User, settings: LazySettings) -> None:
    settings.LOGIN_FAILURES = 2
    assert [ask("alice", "guess")[0] for _ in range(3)] == [401, 401, 429]


def test_three_forms_of_header_carry_a_token(alice: User) -> None:
    token = token_of(alice)
    assert me(authorization=f"Token {token}") == 200
    assert me(authorization=f"bearer {token}") == 200
    assert me(**{"x-api-key": token}) == 200


@pytest.mark.parametrize("sent", ["Token", "Token a b", "Token unknown", "Bearer \xe9", "Token " + "a" * 5000])
def test_a_401_says_how_to_send_a_token(alice: User, sent: str) -> None:
    answer = APIClient().get("/api/v1/me/", headers={"authorization": sent})
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Token")
    assert "X-Api-Key" in answer.json()["detail"]
    assert "/api/v1/token/" in answer.json()["detail"]


def test_an_unknown_key_is_401(alice: User) -> None:
    assert me(**{"x-api-key": "unknown"}) == 401


def test_no_token_at_all_is_told_how(db: None) -> None:
    answer = APIClient().get("/api/v1/me/", headers={"authorization": "Basic YWxpY2U6eA=="})
    assert (answer.status_code, answer.json()["code"]) == (401, "not_authenticated")
    assert "Authorization: Token" in answer.json()["detail"]


def test_an_expired_token_is_401(alice: User) -> None:
    token = token_of(alice, expiry=timedelta(seconds=-1))
    assert me(authorization=f"Token {token}") == 401


def test_a_token_without_end_lasts(alice: User) -> None:
    _, token = Token.objects.create(alice, expiry=None)
    assert me(authorization=f"Token {token}") == 200


def test_the_token_of_a_closed_account_is_401(alice: User) -> None:
    token = token_of(alice)
    User.objects.update(is_active=False)
    assert me(authorization=f"Token {token}") == 401


def test_a_new_token_clears_the_expired_ones(alice: User) -> None:
    token_of(alice, expiry=timedelta(seconds=-1))
    token_of(make_user("grace"), expiry=timedelta(seconds=-1))
    ask("alice", PASSWORD)
    assert Token.objects.filter(user=alice, expiry__lte=timezone.now()).count() == 0
    assert Token.objects.count() == 2


def test_many_tokens_cost_no_more_than_one(alice: User, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    tokens = [token_of(alice) for _ in range(5)]
    me(authorization=f"Token {tokens[0]}")  # its use is noted once an hour
    with django_assert_num_queries(2):  # the token with its user, and the memberships
        me(authorization=f"Token {tokens[0]}")


def test_me_tells_who_and_where(alice: User, project: Project) -> None:
    client = APIClient()
    client.force_authenticate(alice)
    assert client.get("/api/v1/me/").json() == {
        "username": "alice",
        "is_staff": False,
        "memberships": [
            {"project": "talk", "role": "annotator", "offered_role": "", "pseudonym": pseudonym(alice, project)}
        ],
    }


def test_a_page_s_session_may_read_and_needs_csrf_to_write(alice: User, project: Project) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(alice)
    assert browser.get("/api/v1/me/").status_code == 200
    refused = browser.post("/api/v1/projects/talk/next/")
    assert (refused.status_code, refused.json()["code"]) == (403, "permission_denied")
