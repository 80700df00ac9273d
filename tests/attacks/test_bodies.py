"""Bodies that are too large are refused before anything of them is parsed or written to the disk."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from rest_framework.test import APIClient

from annotator.accounts import tokens
from annotator.infrastructure.web.body_limits import STRANGERS_MOST
from annotator.models import Project, Task
from tests.builders import task_row
from tests.conftest import As, Cast
from tests.web import Web, web

MEGABYTE = 1_000_000
IMPORT = "/api/v1/projects/talk/import/"


# Under any server ------------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize(("path", "megabytes"), [("/login/", 2), ("/api/v1/token/", 11), ("/projects/talk/review/", 2)])
def test_more_than_the_address_takes_is_413(path: str, megabytes: int) -> None:
    answer = Client().post(path, b"x" * megabytes * MEGABYTE, content_type="application/x-www-form-urlencoded")
    assert answer.status_code == 413
    if path.startswith("/api/"):
        assert (set(answer.json()), answer.json()["code"]) == ({"detail", "code", "errors"}, "too_large")
    else:
        assert b"The body is larger than 1,000,000 bytes" in answer.content


@pytest.mark.django_db
def test_an_import_has_a_limit_of_its_own(settings: LazySettings, cast: Cast, as_user: As) -> None:
    rows = json.dumps(task_row("one", prompt="x" * 2_000))
    settings.JSON_MAX_BYTES = 100
    answer = as_user(cast.carol).generic("POST", IMPORT, rows, content_type="application/x-ndjson")
    assert answer.json()["created"] == 1
    settings.IMPORT_MAX_BYTES = 1_000
    answer = as_user(cast.carol).generic("POST", IMPORT, rows, content_type="application/x-ndjson")
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


@pytest.mark.django_db
def test_a_body_of_unknown_length_is_read_as_far_as_its_limit(settings: LazySettings, cast: Cast) -> None:
    settings.IMPORT_MAX_BYTES = 1_000
    client = APIClient()
    client.force_authenticate(cast.carol)
    rows = b"".join(json.dumps(task_row(f"t{number}")).encode() + b"\n" for number in range(50))
    chunked: dict[str, Any] = {"wsgi.input": BytesIO(rows), "wsgi.input_terminated": True, "CONTENT_LENGTH": ""}
    answer = client.generic("POST", IMPORT, "", content_type="text/plain", HTTP_TRANSFER_ENCODING="chunked", **chunked)
    assert answer.status_code == 413
    assert not Task.objects.exists()


@pytest.mark.django_db
def test_a_file_is_refused_where_none_is_taken(tmp_path: Path, settings: LazySettings) -> None:
    settings.FILE_UPLOAD_TEMP_DIR = str(tmp_path)
    settings.FORM_MAX_BYTES = 10 * MEGABYTE
    answer = Client().post("/login/", {"username": "x", "file": SimpleUploadedFile("x", b"x" * 3 * MEGABYTE)})
    assert answer.status_code == 400
    assert list(tmp_path.iterdir()) == []


# Over a socket ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, django_db_setup: None) -> Iterator[Web]:
    with web(tmp_path_factory.mktemp("web")) as made:
        yield made


class Watch:
    """The bytes of the largest file that was open in the server's temporary folder, deleted ones too."""

    def __init__(self, server: Web) -> None:
        self.server, self.most, self.done = server, 0, threading.Event()
        self.thread = threading.Thread(target=self._look)

    def __enter__(self) -> "Watch":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()

    def _look(self) -> None:
        while not self.done.wait(0.005):
            for pid in self.server.workers():
                for link in Path(f"/proc/{pid}/fd").iterdir():
                    try:
                        if str(link.readlink()).startswith(str(self.server.temporary)):
                            self.most = max(self.most, link.stat().st_size)
                    except OSError:
                        continue


def head(path: str, *lines: str) -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: 127.0.0.1", *lines, "", ""]).encode()


def sent(server: Web, first: bytes, body: Iterator[bytes]) -> bytes:
    """The answer to a request whose sender stops when nobody takes any more."""
    with server.connect() as opened:
        opened.sendall(first)
        try:
            for piece in body:
                opened.sendall(piece)
        except (TimeoutError, ConnectionError):
            pass
        return answer_from(opened)


def answer_from(opened: socket.socket) -> bytes:
    data = b""
    try:
        while piece := opened.recv(65536):
            data += piece
    except (TimeoutError, ConnectionError):
        pass
    return data


def pieces(megabytes: int) -> Iterator[bytes]:
    return (b"x" * 100_000 for _ in range(10 * megabytes))


def chunks(megabytes: int) -> Iterator[bytes]:
    yield from (b"186A0\r\n" + piece + b"\r\n" for piece in pieces(megabytes))
    yield b"0\r\n\r\n"


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=xyz", "application/x-www-form-urlencoded"])
def test_fifty_megabytes_to_the_login_page_are_refused_without_a_file(server: Web, kind: str) -> None:
    with Watch(server) as watch:
        answer = sent(server, head("/login/", f"Content-Type: {kind}", f"Content-Length: {50 * MEGABYTE}"), pieces(50))
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"larger than 1,000,000 bytes" in answer
    assert watch.most == 0


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", ["/login/", "/api/v1/token/", IMPORT])
def test_fifty_megabytes_of_unknown_length_from_a_stranger_are_refused_without_a_file(server: Web, path: str) -> None:
    with Watch(server) as watch:
        answer = sent(server, head(path, "Content-Type: application/json", "Transfer-Encoding: chunked"), chunks(50))
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert watch.most == 0


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_stranger_s_import_is_refused_before_it_is_read(server: Web) -> None:
    length = f"Content-Length: {900 * MEGABYTE}"
    with Watch(server) as watch:
        answer = sent(server, head(IMPORT, "Content-Type: text/csv", length), pieces(50))
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["code"] == "not_authenticated"
    assert watch.most == 0


@pytest.fixture
def token(cast: Cast) -> str:
    return str(tokens.issue(cast.carol)[1])


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("asks_first", [False, True])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_manager_s_import_goes_in(server: Web, project: Project, token: str, asks_first: bool, chunked: bool) -> None:
    rows = b"".join(json.dumps(task_row(f"t{number}", prompt="x" * 1_000)).encode() + b"\n" for number in range(300))
    assert len(rows) > 2 * STRANGERS_MOST
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(rows)}"
    body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(rows), rows) if chunked else rows
    expects = ["Expect: 100-continue"] if asks_first else []
    with server.connect() as opened:
        kind = ("Content-Type: application/x-ndjson", "Connection: close")
        first = head(IMPORT, f"X-Api-Key: {token}", *kind, length, *expects)
        opened.sendall(first if asks_first else first + body[:100])
        if asks_first:
            assert opened.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        else:
            time.sleep(0.3)  # the question is answered before more comes
        opened.sendall(body if asks_first else body[100:])
        answer = answer_from(opened)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["created"] == 300


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_an_annotator_may_not_send_an_import(server: Web, cast: Cast) -> None:
    token = tokens.issue(cast.alice)[1]
    lines = (f"X-Api-Key: {token}", "Content-Type: text/csv", f"Content-Length: {50 * MEGABYTE}")
    assert sent(server, head(IMPORT, *lines), pieces(50)).startswith(b"HTTP/1.1 403 ")
