"""Repeats transactions that PostgreSQL aborted because of a deadlock or a serialisation failure, which are no errors.

Workers also wait while PostgreSQL restarts; pages do not, as somebody waits for them.
"""

import logging
import random
import time
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, connection, transaction
from psycopg.errors import DeadlockDetected, SerializationFailure

from annotator.infrastructure.stopping import stopping

P = ParamSpec("P")
T = TypeVar("T")
TRIES = 5
LONGEST_PAUSE_SECONDS = 0.05
OUTAGE_PAUSE_SECONDS = 1.0
_log = logging.getLogger(__name__)


def in_transaction(stage: Callable[P, T]) -> Callable[P, T]:
    """Runs a stage function in its own transaction, up to TRIES times; inside another transaction it runs once."""

    @wraps(stage)
    def tried(*args: P.args, **kwargs: P.kwargs) -> T:
        # A deadlock aborts the outer transaction as a whole, so only the outermost function can try again.
        tries = 1 if connection.in_atomic_block else TRIES
        for last in [False] * (tries - 1) + [True]:
            try:
                with transaction.atomic():
                    return stage(*args, **kwargs)
            except OperationalError as failed:
                if last or not isinstance(failed.__cause__, DeadlockDetected | SerializationFailure):
                    raise
                # A random pause separates the two transactions, which would otherwise meet again.
                time.sleep(random.uniform(0, LONGEST_PAUSE_SECONDS))
        raise AssertionError("the last try returns or raises")

    return tried


def outlasting_outages(stage: Callable[P, T]) -> Callable[P, T]:
    """Repeats a worker's stage function if the database goes away meanwhile, and waits for its return.

    The database may have gone away just after the commit, so running the stage twice must do no harm. A worker that is
    asked to end stops waiting.
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
        # Django keeps a broken connection until it is closed, and would not open another.
        connection.close()
        try:
            connection.ensure_connection()
        except (OperationalError, InterfaceError):
            if stopping.wait(OUTAGE_PAUSE_SECONDS):
                raise
        else:
            return
