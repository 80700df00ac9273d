"""Transactions that PostgreSQL gave up on, tried again: deadlocks and serialisation failures are nobody's fault.

Workers outlast a restart of PostgreSQL too; a page would not wait for it.
"""

import logging
import random
import time
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, connection, transaction
from psycopg.errors import DeadlockDetected, SerializationFailure

from annotator.background import heartbeats

P = ParamSpec("P")
T = TypeVar("T")
TRIES = 5
LONGEST_PAUSE_SECONDS = 0.05
OUTAGE_PAUSE_SECONDS = 1.0
_log = logging.getLogger(__name__)


def in_transaction(stage: Callable[P, T]) -> Callable[P, T]:
    """Runs a stage function in a transaction of its own, up to TRIES times; inside another one it runs once."""

    @wraps(stage)
    def tried(*args: P.args, **kwargs: P.kwargs) -> T:
        tries = 1 if connection.in_atomic_block else TRIES
        for last in [False] * (tries - 1) + [True]:
            try:
                with transaction.atomic():
                    return stage(*args, **kwargs)
            except OperationalError as failed:
                if last or not isinstance(failed.__cause__, DeadlockDetected | SerializationFailure):
                    raise
                # Apart from each other, or the two would meet again.
                time.sleep(random.uniform(0, LONGEST_PAUSE_SECONDS))
        raise AssertionError("the last try returns or raises")

    return tried


def outlasting_outages(stage: Callable[P, T]) -> Callable[P, T]:
    """For long work of a worker: where the database goes away, waits for its return and does the stage anew.

    As it may have gone after the commit, the stage must do no harm twice. A worker that is asked to end stops waiting.
    """

    @wraps(stage)
    def tried(*args: P.args, **kwargs: P.kwargs) -> T:
        for last in [False] * (TRIES - 1) + [True]:
            try:
                return stage(*args, **kwargs)
            except (OperationalError, InterfaceError) as away:
                if last or connection.in_atomic_block:
                    raise
                _log.warning("the database went away, waiting for it: %s", away)
                _wait_for_database()
        raise AssertionError("the last try returns or raises")

    return tried


def _wait_for_database() -> None:
    while True:
        connection.close()
        try:
            connection.ensure_connection()
        except (OperationalError, InterfaceError):
            if heartbeats.stopping.wait(OUTAGE_PAUSE_SECONDS):
                raise
        else:
            return
