"""Sends messages to the workers. Callers wait for Redis only for a moment, because a page may be waiting for them.

A message that Redis does not accept is logged and forgotten. Its subject is a row, which beat finds again.
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
"""After one call has waited in vain, the calls of the next seconds fail at once instead of waiting as well."""
FAILURES = (OperationalError, redis.RedisError, OSError)
_log = logging.getLogger(__name__)
_hung_until = -math.inf


@contextmanager
def without_waiting_twice() -> Iterator[None]:
    """Wraps a call of Redis. Raises redis.ConnectionError at once if such a call has just waited in vain."""
    global _hung_until
    began = time.monotonic()
    if began < _hung_until:
        raise redis.ConnectionError("Redis did not answer a moment ago")
    try:
        yield
    except FAILURES:
        # Only waits count: a refused connection costs nothing, and may be accepted the next time.
        if time.monotonic() - began >= PATIENCE_SECONDS:
            _hung_until = time.monotonic() + PAUSE_SECONDS
        raise


def send(task: str, arguments: Sequence[int] = (), **options: Any) -> bool:
    """Sends the message now; returns whether Redis accepted it."""
    for last in (False, True):  # twice, as the first connection may be stale after a restart of Redis
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
    """Sends the message when the transaction is committed, or at once outside a transaction."""
    # A worker that was faster than the commit would not find the row.
    transaction.on_commit(partial(send, task, arguments, **options))
