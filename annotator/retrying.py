"""Transactions that PostgreSQL gave up on, tried again: deadlocks and serialisation failures are nobody's fault."""

import random
import time
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db import OperationalError, connection, transaction
from psycopg.errors import DeadlockDetected, SerializationFailure

P = ParamSpec("P")
T = TypeVar("T")
TRIES = 5
LONGEST_PAUSE_SECONDS = 0.05


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
