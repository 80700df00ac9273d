"""Takes PostgreSQL's advisory locks, named by a subject and a number, for work that two processes must not do at once.

A session lock lasts beyond transactions and suits long work; a transaction lock ends with its transaction. If the
process dies, PostgreSQL releases both. The claim's own lock is part of its statement (stages/assignment/leases.py),
which saves a round trip.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def waiting_session_lock(subject: str, number: int = 0) -> Iterator[None]:
    """Waits for the session lock and holds it until the block ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(hashtext(%s), %s)", [subject, number])
    try:
        yield
    finally:
        _unlock(subject, number)


@contextmanager
def session_lock(subject: str, number: int = 0) -> Iterator[bool]:
    """Yields whether this process got the session lock, without waiting; if so, holds it until the block ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtext(%s), %s)", [subject, number])
        is_ours = bool(cursor.fetchone()[0])
    try:
        yield is_ours
    finally:
        # Session locks are counted: unlocking one that was not taken here would end that of an outer block.
        if is_ours:
            _unlock(subject, number)


def waiting_transaction_lock(subject: str, number: int = 0) -> None:
    """Waits for the transaction lock, which PostgreSQL releases when the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s), %s)", [subject, number])


def transaction_lock(subject: str, number: int = 0) -> bool:
    """Returns whether this transaction got the lock, without waiting. PostgreSQL releases it with the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtext(%s), %s)", [subject, number])
        return bool(cursor.fetchone()[0])


def _unlock(subject: str, number: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(hashtext(%s), %s)", [subject, number])
