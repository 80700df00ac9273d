"""Guessing passwords: through whatever door, from one address or many; and keeping the owner out by it."""

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from annotator.accounts import logins
from annotator.infrastructure.db.clock import database_now
from annotator.models import AuditEntry, LoginFailures, User
from tests.conftest import Cast

PASSWORD = "correct horse battery"
OWN, OTHER = "192.0.2.1", "198.51.100.9"
Knock = Callable[..., Any]


@pytest.fixture
def carol(cast: Cast) -> User:
    cast.carol.is_staff = True
    cast.carol.set_password(PASSWORD)
    cast.carol.save()
    return cast.carol


def by_page(password: str, *, address: str = OWN, name: str = "carol", door: str = "/login/", **headers: str) -> Any:
    sent = {"username": name, "password": password}
    return Client().post(door, sent, REMOTE_ADDR=address, headers=headers)


def by_token(password: str, *, address: str = OWN, name: str = "carol") -> Any:
    sent = {"username": name, "password": password}
    return APIClient().post("/api/v1/token/", sent, format="json", REMOTE_ADDR=address)


def by_change(password: str, *, address: str = OWN) -> Any:
    browser = Client()
    browser.force_login(User.objects.get(username="carol"))
    new = {"new_password1": "another good phrase", "new_password2": "another good phrase"}
    return browser.post("/password/", {"old_password": password, **new}, REMOTE_ADDR=address)


def by_admins_change(password: str, *, address: str = OWN) -> Any:
    browser = Client()
    browser.force_login(User.objects.get(username="carol"))
    new = {"new_password1": "another good phrase", "new_password2": "another good phrase"}
    return browser.post("/admin/password_change/", {"old_password": password, **new}, REMOTE_ADDR=address)


def got_in(answer: Any) -> bool:
    return answer.status_code == 302 or bool(answer.content.startswith(b'{"token"'))


DOORS = [by_page, by_token, by_change, by_admins_change]


@pytest.mark.parametrize("door", DOORS)
def test_after_five_wrong_passwords_the_right_one_waits(carol: User, door: Knock) -> None:
    for number in range(5):
        assert not got_in(door(f"guess {number}"))
    answer = door(PASSWORD)
    assert not got_in(answer)
    assert "Try again in 15 minutes." in answer.content.decode()


@pytest.mark.parametrize("door", [by_page, by_token])
def test_the_answer_says_in_a_header_when_to_come_back(carol: User, door: Knock) -> None:
    for _ in range(5):
        door("a guess")
    answer = door(PASSWORD)
    assert answer.status_code == 429
    assert 0 < int(answer.headers["Retry-After"]) <= 15 * 60


def test_all_doors_count_together(carol: User) -> None:
    for door in [*DOORS, by_page]:
        door("a guess")
    assert not any(got_in(door(PASSWORD)) for door in DOORS)


def test_the_wait_ends(carol: User) -> None:
    for _ in range(5):
        by_page("a guess")
    LoginFailures.objects.update(ends_at=database_now())
    assert got_in(by_page(PASSWORD))


def test_waiting_is_not_prolonged_by_trying(carol: User) -> None:
    for _ in range(5):
        by_page("a guess")
    ends = set(LoginFailures.objects.values_list("ends_at", "count"))
    for _ in range(5):
        by_page("a guess")
    assert set(LoginFailures.objects.values_list("ends_at", "count")) == ends


@pytest.mark.parametrize("door", [by_page, by_token])
def test_right_passwords_are_never_slowed_down(carol: User, door: Knock) -> None:
    assert all(got_in(door(PASSWORD)) for _ in range(70))


def test_a_right_password_forgives_the_slips_before_it(carol: User) -> None:
    for _ in range(3):
        for _ in range(4):
            by_page("a slip")
        assert got_in(by_page(PASSWORD))


def test_a_stranger_s_guesses_do_not_keep_the_owner_out_elsewhere(carol: User) -> None:
    for _ in range(5):
        by_page("a guess", address=OTHER)
    assert not got_in(by_page(PASSWORD, address=OTHER))
    assert got_in(by_page(PASSWORD, address=OWN))


def test_guesses_from_many_addresses_leave_each_one_guess_and_the_owner_in(carol: User) -> None:
    for number in range(10):
        for _ in range(5):
            by_token("a guess", address=f"198.51.100.{number}")
    assert got_in(by_token(PASSWORD, address=OWN))
    assert by_token("a guess", address="203.0.113.1").status_code == 401
    assert by_token("a guess", address="203.0.113.1").status_code == 429


def test_one_address_has_a_limit_over_all_accounts(carol: User) -> None:
    answers = [by_token("a guess", name=f"name-{number}").status_code for number in range(101)]
    assert answers == [401] * 100 + [429]
    assert by_token(PASSWORD, address=OTHER).status_code == 200


def test_a_browser_that_was_here_before_gets_in_beside_a_guesser(carol: User) -> None:
    """Behind one proxy, or in one office, everybody has one address."""
    browser = Client(REMOTE_ADDR=OWN)
    browser.post("/login/", {"username": "carol", "password": PASSWORD})
    browser.post("/logout/")
    for _ in range(5):
        by_page("a guess")
    assert not got_in(by_page(PASSWORD))
    assert got_in(browser.post("/login/", {"username": "carol", "password": PASSWORD}))


def test_a_browser_is_known_for_the_accounts_that_logged_in_there(carol: User, cast: Cast) -> None:
    browser = Client(REMOTE_ADDR=OWN)
    browser.post("/login/", {"username": "carol", "password": PASSWORD})
    browser.post("/logout/")
    answers = [browser.post("/login/", {"username": "bob", "password": "a guess"}).status_code for _ in range(6)]
    assert answers == [200] * 5 + [429]


def test_a_known_browser_has_a_limit_of_its_own(carol: User) -> None:
    browser = Client(REMOTE_ADDR=OWN)
    browser.post("/login/", {"username": "carol", "password": PASSWORD})
    browser.post("/logout/")
    answers = [browser.post("/login/", {"username": "carol", "password": "a guess"}).status_code for _ in range(11)]
    assert answers == [200] * 10 + [429]


def test_a_made_up_cookie_is_no_known_browser(carol: User) -> None:
    for _ in range(5):
        by_page("a guess")
    browser = Client(REMOTE_ADDR=OWN)
    browser.cookies[logins.COOKIE] = '["x",["carol"]]:made:up'
    assert not got_in(browser.post("/login/", {"username": "carol", "password": PASSWORD}))


def test_a_written_address_is_not_believed(carol: User) -> None:
    for number in range(5):
        by_page("a guess", **{"x-forwarded-for": f"203.0.113.{number}"})
    assert not got_in(by_page(PASSWORD, **{"x-forwarded-for": "203.0.113.77"}))


@pytest.mark.parametrize(
    ("proxies", "recorded", "address"),
    [
        (0, "203.0.113.1", OWN),
        (1, "203.0.113.1", "203.0.113.1"),
        (1, "10.0.0.1, 203.0.113.1", "203.0.113.1"),
        (2, "10.0.0.1, 203.0.113.1, 198.51.100.1", "203.0.113.1"),
        (2, "203.0.113.1", OWN),
        (1, "", OWN),
        (1, "nobody", OWN),
    ],
)
def test_proxies_are_believed_as_far_as_configured(
    carol: User, settings: LazySettings, proxies: int, recorded: str, address: str
) -> None:
    settings.TRUSTED_PROXIES = proxies
    by_page("a guess", **{"x-forwarded-for": recorded})
    assert AuditEntry.objects.get(action="login.failed").details["address"] == address


def test_addresses_of_one_ipv6_network_count_as_one(carol: User) -> None:
    for number in range(5):
        by_page("a guess", address=f"2001:db8::{number:x}")
    assert not got_in(by_page(PASSWORD, address="2001:db8::abcd"))
    assert got_in(by_page(PASSWORD, address="2001:db8:0:1::1"))


def test_logins_failures_and_lockouts_are_in_the_audit(carol: User) -> None:
    browser = Client(REMOTE_ADDR=OWN)
    for password in ("a guess",) * 4 + (PASSWORD,):
        browser.post("/login/", {"username": "carol", "password": password})
    browser.post("/logout/")
    for _ in range(6):
        by_token("a guess", address=OTHER)
    entries = AuditEntry.objects.filter(action__startswith="login.").order_by("pk")
    seen = [(entry.action, entry.subject, entry.details["address"]) for entry in entries]
    assert seen == [
        *[("login.failed", "account carol", OWN)] * 4,
        ("login.succeeded", "account carol", OWN),
        ("login.ended", "account carol", OWN),
        *[("login.failed", "account carol", OTHER)] * 5,
        ("login.locked", "account carol", OTHER),
    ]


def test_neither_audit_nor_log_nor_counts_hold_what_was_typed(carol: User, caplog: pytest.LogCaptureFixture) -> None:
    """Passwords end up in the name's field."""
    with caplog.at_level(logging.INFO, "annotator.accounts.logins"):
        by_page("my secret", name="a slipped secret")
        by_page("my secret")
    kept = str([*AuditEntry.objects.values(), *LoginFailures.objects.values()]) + caplog.text
    assert "secret" not in kept
    assert "wrong password for account carol from 192.0.2.1" in caplog.text
    assert AuditEntry.objects.filter(subject="an account that does not exist").count() == 1


def test_counts_and_sessions_that_are_over_are_taken_away(carol: User) -> None:
    by_page("a guess")
    by_page(PASSWORD, address=OTHER)
    assert logins.forget_ended(now=timezone.now()) == 0
    assert logins.forget_ended(now=timezone.now() + timedelta(minutes=16)) == 3
    assert logins.forget_ended(now=timezone.now() + timedelta(days=15)) == 1


@pytest.mark.parametrize("weak", ["12345678", "90157382641", "tall ord9", "password12"])
def test_short_common_and_numeric_passwords_are_refused(carol: User, weak: str) -> None:
    with pytest.raises(ValidationError):
        validate_password(weak, carol)


def test_sessions_are_for_the_server_alone_and_end(carol: User) -> None:
    cookie = by_page(PASSWORD).cookies["sessionid"]
    assert (cookie["httponly"], cookie["samesite"], cookie["max-age"]) == (True, "Lax", 14 * 24 * 60 * 60)
