"""Messages to the workers, and how long anybody waits for Redis: for a moment only, as a page would wait with us.

A message that is not taken is logged and forgotten. What it was about is a row, which beat finds again.
"""

import logging
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import redis
from django.db import transaction
from kombu.exceptions import OperationalError

from annotator.celery import PATIENCE_SECONDS, app

PAUSE_SECONDS = 2.0
"""After somebody has waited in vain nobody else does for so long."""
FAILURES = (OperationalError, redis.RedisError, OSError)
_log = logging.getLogger(__name__)
_hung_until = -math.inf


@contextmanager
def without_waiting_twice() -> Iterator[None]:
    """Around a call of Redis. Raises redis.ConnectionError at once where such a call has just waited in vain."""
    global _hung_until
    began = time.monotonic()
    if began < _hung_until:
        raise redis.ConnectionError("Redis did not answer a moment ago")
    try:
        yield
    except FAILURES:
        # A refused connection costs nothing, and may be accepted the next time.
        if time.monotonic() - began >= PATIENCE_SECONDS:
            _hung_until = time.monotonic() + PAUSE_SECONDS
        raise


def send(task: str, arguments: Sequence[int] = (), **options: Any) -> bool:
    """Sends the message now; False where Redis did not take it."""
    for last in (False, True):  # a connection may be stale since Redis was started anew
        try:
            with without_waiting_twice():
                app.send_task(task, list(arguments), **options)
        except FAILURES as failed:
            if last:
                _log.warning("%s%s was not sent, and has to be found again: %s", task, tuple(arguments), failed)
        else:
            return True
    return False


def send_on_commit(task: str, arguments: Sequence[int] = (), **options: Any) -> None:
    """Sends the message once the rows that it is about are there; at once outside a transaction."""
    transaction.on_commit(partial(send, task, arguments, **options))
