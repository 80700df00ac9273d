"""Advisory locks of PostgreSQL: named by a subject and a number, for work that two processes must not do at once.

A session lock lasts beyond transactions, for long work; a transaction lock ends with its transaction. The claim's own
lock is part of its statement (annotator/assignment/leases.py), which saves a round trip.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def waiting_session_lock(subject: str, number: int = 0) -> Iterator[None]:
    """Waits for the lock and holds it until the block ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(hashtext(%s), %s)", [subject, number])
    try:
        yield
    finally:
        _unlock(subject, number)


@contextmanager
def session_lock(subject: str, number: int = 0) -> Iterator[bool]:
    """Yields at once whether the lock is ours; if so, it is until the block ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtext(%s), %s)", [subject, number])
        is_ours = bool(cursor.fetchone()[0])
    try:
        yield is_ours
    finally:
        if is_ours:
            _unlock(subject, number)


def waiting_transaction_lock(subject: str, number: int = 0) -> None:
    """Waits for the lock, which ends with the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s), %s)", [subject, number])


def transaction_lock(subject: str, number: int = 0) -> bool:
    """Whether the lock, which ends with the transaction, is ours; it never waits."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtext(%s), %s)", [subject, number])
        return bool(cursor.fetchone()[0])


def _unlock(subject: str, number: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(hashtext(%s), %s)", [subject, number])
