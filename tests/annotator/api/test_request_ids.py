"""A creating call that is sent again with its `request_id` makes nothing twice and answers with what is there."""

from collections.abc import Callable
from threading import Barrier, Thread
from typing import Any
from uuid import uuid4

import pytest
from django.core import mail
from django.db import IntegrityError, connection, transaction
from rest_framework.test import APIClient

from annotator.infrastructure.background import heartbeats
from annotator.models import ExportJob, Invitation, Project, Release, Token, User
from tests.builders import NOW, make_member
from tests.conftest import Cast

TALK = "/api/v1/projects/talk"
MADE: dict[str, Any] = {"invitations": Invitation, "releases": Release, "export-jobs": ExportJob}


@pytest.fixture(autouse=True)
def light() -> None:
    heartbeats.beat("light@here", ["light"])


@pytest.mark.parametrize("path", MADE)
def test_a_call_that_is_sent_again_makes_nothing_twice(project: Project, carol: APIClient, path: str) -> None:
    body = {"request_id": str(uuid4())}
    first, again = (carol.post(f"{TALK}/{path}/", body) for _ in range(2))
    hidden = ("link", "token")
    assert {name: value for name, value in first.json().items() if name not in hidden} == again.json()
    assert again.headers.get("Location") == first.headers.get("Location")
    assert (first.status_code, again.status_code) in {(201, 200), (202, 202)}
    assert carol.post(f"{TALK}/{path}/", {"request_id": str(uuid4())}).status_code == first.status_code
    assert MADE[path].objects.count() == 2


@pytest.mark.parametrize("path", MADE)
def test_without_an_id_each_call_makes_one(project: Project, carol: APIClient, path: str) -> None:
    assert {carol.post(f"{TALK}/{path}/", {}).status_code for _ in range(2)} <= {201, 202}
    assert MADE[path].objects.count() == 2


@pytest.mark.parametrize("path", MADE)
def test_what_is_no_uuid_is_refused(project: Project, carol: APIClient, path: str) -> None:
    answer = carol.post(f"{TALK}/{path}/", {"request_id": "one"})
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["request_id"])


def test_a_link_is_sent_once(project: Project, carol: APIClient) -> None:
    body = {"request_id": str(uuid4()), "email": "frank@example.org"}
    assert [carol.post(f"{TALK}/invitations/", body).status_code for _ in range(2)] == [201, 200]
    assert len(mail.outbox) <= 1


def test_an_export_of_somebody_else_is_not_answered(
    project: Project, cast: Cast, carol: APIClient, as_user: Callable[[User], APIClient]
) -> None:
    make_member(project, cast.dave, role="manager")
    body = {"request_id": str(uuid4())}
    numbers = {one.post(f"{TALK}/export-jobs/", body).json()["id"] for one in (carol, as_user(cast.dave))}
    assert len(numbers) == 2


def test_an_id_makes_one_row(project: Project, cast: Cast) -> None:
    one: dict[str, Any] = {"project": project, "request_id": uuid4(), "created_at": NOW}
    rows: dict[type[Any], dict[str, Any]] = {
        Invitation: {"expires_at": NOW},
        Release: {},
        ExportJob: {"requested_by": cast.carol},
    }
    for kind, more in rows.items():
        varied = "digest" if kind is Invitation else "number" if kind is Release else "attempt"
        kind.objects.create(**one, **more, **{varied: 1})
        with pytest.raises(IntegrityError, match="once_for_a_request"), transaction.atomic():
            kind.objects.create(**one, **more, **{varied: 2})


@pytest.mark.django_db(transaction=True)
def test_of_simultaneous_calls_one_makes_it(project: Project, cast: Cast) -> None:
    token, start, answers = Token.objects.create(cast.carol)[1], Barrier(6), []

    def ask() -> None:
        client: Any = APIClient(headers={"authorization": f"Token {token}"})
        start.wait()
        answers.append(client.post(f"{TALK}/invitations/", body))
        connection.close()

    body = {"request_id": str(uuid4())}
    threads = [Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status_code for answer in answers) == [200] * 5 + [201]
    assert {answer.json()["id"] for answer in answers} == {Invitation.objects.get().pk}
