"""Locks that a session of PostgreSQL's holds beyond its transactions: for long work that nobody need do twice."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def waited_for(subject: str, number: int = 0) -> Iterator[None]:
    """Waits until nobody else is at this work; nobody else will be until the block ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(hashtext(%s), %s)", [subject, number])
    try:
        yield
    finally:
        _let_go(subject, number)


@contextmanager
def alone(subject: str, number: int = 0) -> Iterator[bool]:
    """Whether nobody else is at this work; if so, nobody else will be until the block ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtext(%s), %s)", [subject, number])
        is_alone = bool(cursor.fetchone()[0])
    try:
        yield is_alone
    finally:
        if is_alone:
            _let_go(subject, number)


def _let_go(subject: str, number: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(hashtext(%s), %s)", [subject, number])
