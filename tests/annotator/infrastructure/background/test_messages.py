"""Messages to the workers: sent after the commit, once more where the connection was stale, never waited for long."""

import re
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction
from kombu.exceptions import OperationalError

from annotator.celery import app
from annotator.infrastructure.background import messages


@pytest.fixture
def refusals(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Errors that Redis answers with, one a try; what comes after them is taken."""
    errors: list[Any] = []

    def take(*_: Any, **__: Any) -> None:
        if errors:
            raise errors.pop(0)

    monkeypatch.setattr(app, "send_task", take)
    return errors


def test_a_stale_connection_is_tried_once_more(refusals: list[Any]) -> None:
    refusals.append(OperationalError("Broken pipe"))
    assert messages.send("a.task", [1])


def test_what_redis_does_not_take_is_no_error(refusals: list[Any]) -> None:
    refusals += [OperationalError("Connection refused")] * 2
    assert not messages.send("a.task", [1])
    assert messages.send("a.task", [1])


def test_nothing_is_sent_for_a_row_that_is_taken_back(
    db: None, refusals: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks() as asked, transaction.atomic():
        messages.send_on_commit("a.task", [1])
        transaction.set_rollback(True)
    assert asked == []


def test_every_message_goes_through_here() -> None:
    sources = [path for half in ("annotator", "rewards") for path in (settings.BASE_DIR / half).rglob("*.py")]
    sending = re.compile(r"\.(send_task|delay|delay_on_commit|apply_async)\(")
    assert [path.name for path in sources if sending.search(path.read_text())] == ["messages.py"]
