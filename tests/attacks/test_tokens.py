"""Tokens that do more than they are for, last longer than they should, or are read by others."""

import re
from base64 import b64encode
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import URLResolver, get_resolver
from django.utils import timezone
from knox.crypto import hash_token
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from annotator.accounts import tokens
from annotator.api.scopes import scopes_for
from annotator.models import AuditEntry, Scope, Token, User
from tests.builders import make_task
from tests.conftest import Cast

PASSWORD = "correct horse battery"
HOUR = timedelta(hours=1)


@pytest.fixture
def carol(cast: Cast) -> User:
    cast.carol.set_password(PASSWORD)
    cast.carol.save()
    return cast.carol


def with_scopes(user: User, *scopes: str) -> APIClient:
    return with_token(tokens.issue(user, scopes=list(scopes))[1])


def with_token(token: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {token}")
    return client


def works(token: str) -> bool:
    return bool(with_token(token).get("/api/v1/me/").status_code == 200)


CALLS = {
    "read": [("get", "me/"), ("get", "projects/"), ("get", "projects/talk/export/"), ("get", "tokens/")],
    "annotate": [("post", "projects/talk/next/")],
    "manage": [("patch", "projects/talk/"), ("post", "projects/talk/members/"), ("post", "tokens/")],
    "score": [("post", "score/"), ("post", "openrlhf/talk/")],
}


@pytest.mark.parametrize("scope", CALLS)
def test_a_token_makes_the_calls_of_its_scope_alone(carol: User, scope: str) -> None:
    client = with_scopes(carol, scope)
    refused = {
        other: {client.generic(verb.upper(), f"/api/v1/{place}").json().get("code") for verb, place in calls}
        for other, calls in CALLS.items()
        if other != scope
    }
    assert set.union(*refused.values()) == {"scope_missing"}
    for verb, place in CALLS[scope]:
        answer = client.generic(verb.upper(), f"/api/v1/{place}")
        assert answer.status_code != 401
        assert b"scope_missing" not in b"".join(answer)


def test_scopes_give_no_rights(cast: Cast) -> None:
    answer = with_scopes(cast.alice, *Scope.values).patch("/api/v1/projects/talk/", {"name": "Mine"})
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")


def test_the_refusal_says_what_is_missing(carol: User) -> None:
    answer = with_scopes(carol, "read").post("/api/v1/projects/talk/members/", {})
    assert "needs the scope manage" in answer.json()["detail"]


def rest_views(resolver: URLResolver, below: str = "") -> Iterator[tuple[str, Any]]:
    for url_pattern in resolver.url_patterns:
        place = below + str(url_pattern.pattern)
        if isinstance(url_pattern, URLResolver):
            yield from rest_views(url_pattern, place)
        elif place.startswith("api/v1/"):
            yield place, vars(url_pattern.callback)["cls"]


def test_every_rest_view_that_asks_for_a_user_asks_for_a_scope() -> None:
    views = dict(rest_views(get_resolver()))
    permissions = {
        place: {permission_class.__name__ for permission_class in view.permission_classes}
        for place, view in views.items()
    }
    assert {place for place, class_names in permissions.items() if "WithinScopes" not in class_names} == {
        "api/v1/token/",
        "api/v1/health/live/",
        "api/v1/health/ready/",
        "api/v1/schema/",
        "api/v1/docs/",
    }
    calls = [(view, verb.upper()) for view in views.values() for verb in view.http_method_names if verb in dir(view)]
    assert all(scopes_for(view, verb) <= set(Scope.values) for view, verb in calls)


def test_annotators_calls_and_scoring_have_scopes_of_their_own() -> None:
    by_scope: dict[str, set[str]] = {}
    for place, view in rest_views(get_resolver()):
        changing = {"post", "put", "patch", "delete"} & {verb for verb in view.http_method_names if verb in dir(view)}
        for verb in changing:
            for scope in scopes_for(view, verb.upper()):
                by_scope.setdefault(scope, set()).add(place.removeprefix("api/v1/"))
    held = "assignments/<int:assignment_id>/"
    doings = {f"{held}{doing}" for doing in ("", "annotation/", "skip/", "report/", "guideline-gaps/", "heartbeat/")}
    assert by_scope["annotate"] == {f"projects/<slug:slug>/{doing}/" for doing in ("next", "ahead")} | doings
    assert by_scope["score"] == {"score/", "openrlhf/<slug:slug>/"}


@pytest.mark.parametrize("door", ["delete", "delete_selected"])
def test_a_token_ended_in_the_admin_is_recorded_as_everywhere(client: Client, cast: Cast, door: str) -> None:
    client.force_login(User.objects.create(username="root", is_staff=True, is_superuser=True))
    row, token = tokens.issue(cast.alice, name="notebook")
    if door == "delete":
        client.post(f"/admin/annotator/token/{row.pk}/delete/", {"post": "yes"})
    else:
        client.post("/admin/annotator/token/", {"action": door, "_selected_action": [row.pk], "post": "yes"})
    assert not works(token)
    entry = AuditEntry.objects.get(action="token.ended")
    assert (entry.subject, entry.actor, entry.details["name"]) == ("account alice", "root", "notebook")


# What a token is made of ------------------------------------------------------------------------------------


def test_a_token_lasts_ninety_days_unless_told(carol: User) -> None:
    credentials = {"username": "carol", "password": PASSWORD}
    APIClient().post("/api/v1/token/", credentials)
    APIClient().post("/api/v1/token/", credentials | {"days": 7, "name": "nightly", "scopes": ["read"]})
    first, second = Token.objects.order_by("pk")
    lasting = [(token.expiry - timezone.now() + HOUR).days for token in (first, second)]
    assert lasting == [90, 7]
    assert (first.scopes, second.scopes, second.name) == (list(Scope.values), ["read"], "nightly")


@pytest.mark.parametrize("wish", [{"days": 0}, {"days": 366}, {"days": 10**30}, {"scopes": []}, {"scopes": ["all"]}])
def test_a_token_that_does_nothing_or_lasts_too_long_is_refused(carol: User, wish: dict[str, Any]) -> None:
    answer = APIClient().post("/api/v1/token/", {"username": "carol", "password": PASSWORD, **wish}, format="json")
    assert answer.status_code == 400
    assert not Token.objects.exists()


def test_a_token_makes_none_that_does_more_or_lasts_longer(carol: User) -> None:
    short = with_token(tokens.issue(carol, scopes=["manage", "read"], days=2)[1])
    assert short.post("/api/v1/tokens/", {"scopes": ["score"]}, format="json").status_code == 400
    assert short.post("/api/v1/tokens/", {}, format="json").json()["code"] == "unusable_token"
    made = short.post("/api/v1/tokens/", {"scopes": ["read"], "days": 300}, format="json")
    assert made.status_code == 201
    assert Token.objects.get(pk=made.json()["id"]).expiry < timezone.now() + timedelta(days=2)


def test_one_sees_and_ends_one_s_own_alone(carol: User, cast: Cast) -> None:
    mine, theirs = (tokens.issue(user, name=f"of {user}")[0] for user in (carol, cast.alice))
    client = with_scopes(carol, "read", "manage")
    listed = client.get("/api/v1/tokens/").json()["results"]
    assert [token["name"] for token in listed] == ["of carol", ""]
    assert client.delete(f"/api/v1/tokens/{theirs.pk}/").status_code == 404
    assert client.delete(f"/api/v1/tokens/{mine.pk}/").status_code == 204
    assert set(Token.objects.values_list("name", flat=True)) == {"of alice", ""}


def test_no_answer_but_the_first_has_the_token(carol: User) -> None:
    client = with_scopes(carol, *Scope.values)
    made = client.post("/api/v1/tokens/", {"name": "nightly"}, format="json").json()
    kept = str([*Token.objects.values(), *AuditEntry.objects.values()]) + client.get("/api/v1/tokens/").content.decode()
    assert made["token"] not in kept
    assert with_token(made["token"]).get("/api/v1/me/").status_code == 200


def test_a_password_change_ends_all_tokens(carol: User) -> None:
    _, token = tokens.issue(carol)
    browser = Client()
    browser.force_login(carol)
    new = {"new_password1": "another good phrase", "new_password2": "another good phrase"}
    browser.post("/password/", {"old_password": PASSWORD, **new})
    assert not works(token)
    assert AuditEntry.objects.get(action="token.ended").details["because"] == "the password was changed"


def test_tokens_do_not_come_back_with_a_closed_account(carol: User, cast: Cast, client: Client) -> None:
    _, token = tokens.issue(cast.alice)
    client.force_login(User.objects.create(username="root", is_staff=True, is_superuser=True))
    joined = {"date_joined_0": "2026-01-31", "date_joined_1": "12:00:00", "username": "alice"}
    place = f"/admin/annotator/user/{cast.alice.pk}/change/"
    for closed in ({}, {"is_active": "on"}):
        assert client.post(place, joined | closed).status_code == 302
    assert not works(token)


def test_nobody_makes_a_token_for_somebody_else_in_the_admin(cast: Cast, client: Client) -> None:
    client.force_login(User.objects.create(username="root", is_staff=True, is_superuser=True))
    assert client.post("/admin/annotator/token/add/", {"user": cast.alice.pk}).status_code == 403
    assert client.get("/admin/annotator/token/").status_code == 200


@pytest.mark.parametrize("place", ["me/", "projects/", "openrlhf/talk/", "score/"])
def test_a_token_in_an_address_opens_nothing(carol: User, place: str) -> None:
    _, token = tokens.issue(carol)
    for verb in ("get", "post"):
        assert getattr(APIClient(), verb)(f"/api/v1/{place}?token={token}").status_code in {401, 405}


def test_a_basic_password_opens_the_trainers_door_alone(carol: User) -> None:
    _, token = tokens.issue(carol, scopes=["score"])
    headers = {"authorization": f"Basic {b64encode(f'token:{token}'.encode()).decode()}"}
    make_task(carol.memberships.get().project)
    assert APIClient().post("/api/v1/openrlhf/talk/", headers=headers).json()["code"] == "no_champion"
    assert APIClient().post("/api/v1/score/", headers=headers).status_code == 401


# Its last use -----------------------------------------------------------------------------------------------


def test_a_use_is_noted_once_an_hour(carol: User, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    row, token = tokens.issue(carol)
    assert works(token)
    row.refresh_from_db()
    assert row.last_used_at
    with django_assert_num_queries(2):  # the token with its user, and the memberships that me/ tells
        works(token)
    Token.objects.update(last_used_at=timezone.now() - HOUR)
    works(token)
    row.refresh_from_db()
    assert timezone.now() - row.last_used_at < HOUR


# Settings ----------------------------------------------------------------------------------------------------


def test_a_token_made_on_settings_is_shown_once_and_ended_there(cast: Cast, client: Client) -> None:
    client.force_login(cast.alice)
    sent = {"token-name": "my script", "token-scopes": ["read", "annotate"], "token-days": 7}
    answer = client.post("/settings/tokens/", sent)
    row = Token.objects.get(user=cast.alice)
    (shown,) = re.findall("[0-9a-f]{64}", answer.content.decode())
    assert hash_token(shown) == row.digest
    assert "no-store" in answer.headers["Cache-Control"]
    page = client.get("/settings/").content.decode()
    assert "my script" in page
    assert shown not in page
    client.post(f"/settings/tokens/{row.pk}/end/")
    assert not works(shown)


def test_a_form_with_mistakes_makes_no_token_and_keeps_what_was_written(cast: Cast, client: Client) -> None:
    client.force_login(cast.alice)
    answer = client.post("/settings/tokens/", {"token-name": "my script", "token-days": 400})
    assert (answer.status_code, Token.objects.count()) == (422, 0)
    assert "my script" in answer.content.decode()


def test_nobody_ends_others_tokens_on_settings(cast: Cast, client: Client) -> None:
    row, _ = tokens.issue(cast.bob)
    client.force_login(cast.alice)
    assert client.post(f"/settings/tokens/{row.pk}/end/").status_code == 404


# Commands and before -----------------------------------------------------------------------------------------


def test_the_command_takes_name_scopes_and_days(cast: Cast, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("issue_token", "alice", "--name", "cron", "--scope", "read", "--scope", "score", "--days", "3")
    row = Token.objects.get()
    assert (row.name, row.scopes, (row.expiry - timezone.now() + HOUR).days) == ("cron", ["read", "score"], 3)
    assert works(capsys.readouterr().out.strip())
    with pytest.raises(CommandError, match="at most 365"):
        call_command("issue_token", "alice", "--days", "366")
