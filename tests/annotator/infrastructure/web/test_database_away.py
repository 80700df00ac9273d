"""What people and scripts are told while the database restarts."""

from typing import Any

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.db import InterfaceError, OperationalError
from django.test import Client
from rest_framework.test import APIClient

from annotator.api.authentication import TokenAuthentication
from annotator.infrastructure.web import body_limits
from annotator.models import Project
from annotator.stages import assignment
from tests.conftest import Cast


@pytest.fixture
def database_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_args: object, **_kwargs: object) -> None:
        raise OperationalError("terminating connection due to administrator command")

    monkeypatch.setattr(assignment, "claim", gone)


@pytest.mark.usefixtures("database_away")
def test_a_script_is_told_to_come_back(project: Project, cast: Cast) -> None:
    client = APIClient()
    client.force_authenticate(cast.alice)
    answer = client.post(f"/api/v1/projects/{project.slug}/next/")
    assert (answer.status_code, answer.json()["code"], answer["Retry-After"]) == (503, "database_away", "2")


@pytest.mark.usefixtures("database_away")
def test_a_page_says_that_nothing_is_lost(project: Project, cast: Cast, client: Client) -> None:
    client.force_login(cast.alice)
    answer = client.get(f"/projects/{project.slug}/annotate/")
    assert answer.status_code == 503
    assert "Everything you saved is kept" in answer.content.decode()


# Before a view is reached ----------------------------------------------------------------------------------


@pytest.fixture
def sessions_away(cast: Cast, client: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Alice is logged in, and the database goes away before her session can be read."""
    client.force_login(cast.alice)
    client.raise_request_exception = False

    def gone(*_args: object, **_kwargs: object) -> None:
        raise OperationalError("the connection is closed")

    monkeypatch.setattr(SessionStore, "_get_session_from_db", gone)
    return client


@pytest.mark.parametrize("path", ["/", "/projects/talk/annotate/", "/admin/", "/admin/annotator/task/"])
def test_a_session_that_cannot_be_read_is_no_broken_page(sessions_away: Client, path: str) -> None:
    answer = sessions_away.get(path)
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")
    assert "Everything you saved is kept" in answer.content.decode()


def test_a_large_body_is_not_asked_for_while_nobody_can_be_known(sessions_away: Client) -> None:
    waits: dict[str, Any] = {body_limits.WAITS: 100_000}
    answer = sessions_away.post("/api/v1/projects/talk/import/", **waits)
    assert (answer.status_code, answer.json()["code"], answer["Retry-After"]) == (503, "database_away", "2")


def test_a_token_that_cannot_be_looked_up_is_told_to_come_back(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_args: object, **_kwargs: object) -> None:
        raise InterfaceError("the connection is closed")

    monkeypatch.setattr(TokenAuthentication, "authenticate", gone)
    answer = APIClient().get("/api/v1/me/")
    assert (answer.status_code, answer.json()["code"]) == (503, "database_away")


def test_other_errors_stay_errors(sessions_away: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: object, **_kwargs: object) -> None:
        raise ValueError("a defect")

    monkeypatch.setattr(SessionStore, "_get_session_from_db", broken)
    assert sessions_away.get("/").status_code == 500
