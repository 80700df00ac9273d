"""Calls that are sent again with their key, over the real server with its several processes."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from http.client import HTTPConnection
from typing import NamedTuple

import pytest

from annotator.models import IdempotentCall, ImportJob, Invitation, Project, Token
from tests.conftest import Cast
from tests.web import Web, web

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
TALK = "/api/v1/projects/talk"


class Answer(NamedTuple):
    status: int
    body: bytes
    headers: Message


@pytest.fixture(scope="module")
def server(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with web(tmp_path_factory.mktemp("web")) as made:
        yield made


@pytest.fixture
def token(project: Project, cast: Cast) -> str:
    return str(Token.objects.create(cast.carol)[1])


def send(server: Web, token: str, path: str, body: bytes, media: str = "application/json") -> Answer:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {"Authorization": f"Token {token}", "Idempotency-Key": "one", "Content-Type": media}
    connection.request("POST", f"{TALK}/{path}", body, headers)
    answer = connection.getresponse()
    made = Answer(answer.status, answer.read(), answer.headers)
    connection.close()
    return made


def test_a_large_file_is_kept_once(server: Web, token: str) -> None:
    rows = b'{"id": "a"}\n' * 400_000
    first, again = (send(server, token, "import-jobs/?start=0", rows, "application/x-ndjson") for _ in range(2))
    assert (first.status, again.status, again.body) == (202, 202, first.body)
    assert again.headers["Location"] == first.headers["Location"]
    assert ("Idempotency-Replayed" in first.headers, again.headers["Idempotency-Replayed"]) == (False, "true")
    other = send(server, token, "import-jobs/?start=0", rows[:-4] + b'b"}\n', "application/x-ndjson")
    assert (other.status, json.loads(other.body)["code"]) == (422, "idempotency_key_reused")
    assert ImportJob.objects.get().file_bytes == len(rows)


def test_of_many_at_once_one_does_the_work(server: Web, token: str) -> None:
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: send(server, token, "invitations/", b"{}"), range(24)))
    assert {answer.status for answer in answers} <= {201, 409}
    assert sum(answer.status == 201 and "Idempotency-Replayed" not in answer.headers for answer in answers) == 1
    assert (Invitation.objects.count(), IdempotentCall.objects.get().status) == (1, 201)


def test_each_answer_says_how_many_calls_are_left(server: Web, token: str) -> None:
    told = [send(server, token, "invitations/", b"{}").headers["RateLimit"] for _ in range(3)]
    assert all(re.fullmatch(r'"calls";r=59\d\d\d;t=\d+', one) for one in told)
