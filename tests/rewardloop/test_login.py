"""Whom the command speaks for, and to which server."""

import stat

import pytest

from annotator.accounts import tokens
from rewardloop.command_line import logins
from rewardloop.command_line.logins import Login
from tests.conftest import Cast
from tests.rewardloop.conftest import URL, Run, logged_in, token_of

PASSWORD = "correct horse battery"


def test_a_login_is_kept_where_only_its_owner_can_read_it(cast: Cast, run: Run) -> None:
    cast.dave.set_password(PASSWORD)
    cast.dave.save()
    done = run("login", URL, "--username", "dave", "--scope", "read", typed=[PASSWORD])
    assert done.code == 0, done.err
    assert "as dave" in done.out
    assert PASSWORD not in done.out + done.err
    file = logins.place()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert run("projects", "list").code == 0
    done = run("logout")
    assert (done.code, file.exists()) == (0, False)
    assert "not revoked" in done.err  # a token that may only read


def test_a_wrong_password_is_said_in_one_line(cast: Cast, run: Run) -> None:
    done = run("login", URL, "--username", "alice", typed=["wrong"])
    assert (done.code, done.err.count("\n"), done.out) == (1, 2, "")
    assert not logins.place().exists()


def test_logging_out_revokes_the_token_here_and_there(cast: Cast, run: Run) -> None:
    logged_in(cast.alice)
    tokens.issue(cast.alice)
    assert run("logout").code == 0
    assert cast.alice.auth_token_set.count() == 1
    assert run("logout").out == "You were not logged in.\n"


def test_a_token_can_be_given_instead(cast: Cast, run: Run) -> None:
    assert run("login", URL, "--with-token", typed=[token_of(cast.alice)]).code == 0
    assert logins.stored() is not None


def test_a_login_that_others_can_read_is_refused(as_alice: None, run: Run) -> None:
    logins.place().chmod(0o644)
    done = run("projects", "list")
    assert done.code == 1
    assert "chmod 600" in done.err


def test_the_environment_comes_before_the_login(
    as_alice: None, cast: Cast, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REWARDLOOP_TOKEN", token_of(cast.carol))
    assert run("projects", "show", "talk", "--json").data[0]["own"]["role"] == "manager"


def test_the_token_of_one_server_goes_to_no_other(as_alice: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert logins.client("https://elsewhere.example").connection.token == ""
    assert logins.client(f"{URL}/").connection.token != ""
    monkeypatch.setenv("REWARDLOOP_URL", "https://ours.example")
    monkeypatch.setenv("REWARDLOOP_TOKEN", "ours")
    assert logins.client().connection.token == "ours"
    assert logins.client("https://elsewhere.example").connection.token == ""
    assert logins.client(URL).connection.token not in {"", "ours"}


def test_without_a_login_it_says_how_to_get_one(run: Run) -> None:
    done = run("projects", "list")
    assert (done.code, done.out) == (1, "")
    assert "rewardloop login URL" in done.err


def test_a_revoked_token_is_answered_with_the_way_in(run: Run, db: None) -> None:
    logins.store(Login(URL, "0" * 64))
    done = run("projects", "list")
    assert done.code == 1
    assert "rewardloop login" in done.err
