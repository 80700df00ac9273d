"""What strangers learn from health, and how long they wait for it."""

import logging
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import pytest
import redis
from django.db import connection
from django.test import Client
from redis.backoff import NoBackoff
from redis.retry import Retry

from annotator.infrastructure.background import failures, heartbeats
from annotator.infrastructure.storage import artifacts
from annotator.models import AuditEntry, Installation
from tests import servers

READY = "/api/v1/health/ready/"


@contextmanager
def hung_postgres() -> Iterator[None]:
    """It takes connections, as the kernel does that, and answers nobody."""
    (server,) = (candidate for candidate in servers.running if candidate.name == "postgres")
    children = Path(f"/proc/{server.process.pid}/task").glob("*/children")
    stopped = [server.process.pid or 0, *(int(pid) for child in children for pid in child.read_text().split())]
    for pid in stopped:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in stopped:
            with suppress(ProcessLookupError):  # one that was about to end; the others have to go on all the same
                os.kill(pid, signal.SIGCONT)


def asked() -> tuple[int, float]:
    began = time.monotonic()
    try:
        return Client().get(READY).status_code, time.monotonic() - began
    finally:
        connection.close()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_it_answers_while_postgresql_hangs() -> None:
    assert asked()[0] == 200
    with ThreadPoolExecutor(1) as others:
        with hung_postgres():
            answer = others.submit(asked)
            done, _ = wait([answer], timeout=4)
        status, seconds = answer.result()
    assert (done, status) == ({answer}, 503)
    assert seconds < 3


def test_strangers_are_told_neither_addresses_nor_errors(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(heartbeats, "connection", lambda: redis.Redis(port=1, retry=Retry(NoBackoff(), 0)))
    answer = client.get(READY)
    assert answer.json()["error"] == "Redis does not answer."
    assert "6379" not in answer.content.decode()
    assert ":1" in caplog.text, "the log has what is needed to mend it"


@pytest.mark.django_db(transaction=True)
def test_strangers_learn_how_many_tasks_fail_and_nothing_else(client: Client) -> None:
    failures.note("find_pii", None, RuntimeError("no luck"))
    answer = client.get(READY)
    assert (answer.json()["failures"], answer.json()["status"]) == (1, "ready")
    assert "luck" not in answer.content.decode()


@pytest.mark.django_db(transaction=True)
def test_a_web_with_other_artifacts_says_so(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    artifacts.mark_new()
    assert client.get(READY).json()["artifacts"] is True
    Installation.objects.update(artifacts_id=uuid4())
    answer = client.get(READY).json()
    assert (answer["artifacts"], answer["status"]) == (False, "unavailable")
    with caplog.at_level(logging.ERROR):
        artifacts.report_at_start()
    assert "belong to another installation" in caplog.text


def test_the_audit_cannot_be_emptied(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE annotator_auditentry ENABLE TRIGGER audit_is_never_truncated")
        with pytest.raises(Exception, match="never changed or deleted"):
            cursor.execute(f"TRUNCATE {AuditEntry._meta.db_table}")
