"""Logs as JSON: each line says to which request it belongs, from the page to the worker's task, and names nobody."""

import json
import logging
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from annotator.accounts import tokens
from annotator.infrastructure import request_logs
from annotator.infrastructure.background import heartbeats, redis_client
from annotator.models import ExportJob, Project
from tests.celery_workers import wait_for, worker
from tests.conftest import Cast
from tests.web import Web, web


def lines_of(log: Path) -> list[dict[str, Any]]:
    """Every line but what Celery says to a terminal as it starts and ends."""
    return [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]


def asked(server: Web, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str, Any]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=20)
    sent = {"Content-Type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    connection.request(method, path, json.dumps(body) if body is not None else None, sent)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, answer.headers["X-Request-ID"], content


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_requests_id_goes_from_the_web_to_the_task(project: Project, cast: Cast, tmp_path: Path) -> None:
    redis_client.connection().delete(heartbeats.KEY, *heartbeats.QUEUES)
    with worker("light", tmp_path, LOG_FORMAT="json"), web(tmp_path, LOG_FORMAT="json") as server:
        assert asked(server, "POST", "/api/v1/token/", {"username": "carol", "password": "a wrong guess"})[0] == 401
        assert len(asked(server, "GET", "/login/", X_Request_ID="evil; drop")[1]) == 32
        status, given, _content = asked(
            server,
            "POST",
            f"/api/v1/projects/{project.slug}/export-jobs/?secret=query",
            {"layout": "annotations", "format": "jsonl"},
            Authorization=f"Token {tokens.issue(cast.carol)[1]}",
            X_Request_ID="from-the-proxy",
        )
        assert (status, given) == (202, "from-the-proxy")
        wait_for(lambda: ExportJob.objects.filter(state="done").exists(), what="the export")
        ours = [line for line in lines_of(server.log) if line.get("request_id") == "from-the-proxy"]
        assert any(line["message"].startswith("POST api:export-jobs 202 in") for line in ours)
        wait_for(
            lambda: [line for line in lines_of(tmp_path / "light.log") if line.get("request_id") == "from-the-proxy"],
            what="a line of the task",
        )
    assert len(lines_of(server.log)) == len(server.log.read_text().splitlines())
    everything = server.log.read_text() + (tmp_path / "light.log").read_text()
    for secret in ("carol", "a wrong guess", "secret=query", "127.0.0.1 -"):
        assert secret not in everything
    assert '"message": "login.failed"' in everything


@pytest.mark.django_db
def test_every_answer_has_an_id(client: Client) -> None:
    first, second = (client.get("/login/").headers["X-Request-ID"] for _ in range(2))
    assert first != second
    assert client.get("/login/", headers={"x-request-id": "abc.1"}).headers["X-Request-ID"] == "abc.1"
    assert len(client.get("/login/", headers={"x-request-id": "x" * 65}).headers["X-Request-ID"]) == 32


def test_an_error_is_named_without_what_it_says() -> None:
    def fails() -> None:
        raise ValueError("a text of somebody")

    try:
        fails()
    except ValueError:
        record = logging.LogRecord("rewards", logging.ERROR, "", 0, "run %d failed", (7,), sys.exc_info())
    line = json.loads(request_logs.JsonFormatter().format(record))
    assert (line["message"], line["exception"]) == ("run 7 failed", "ValueError")
    assert line["at"][-1].endswith(" fails")
    assert "a text of somebody" not in str(line)
