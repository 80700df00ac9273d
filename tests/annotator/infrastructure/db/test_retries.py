"""Transactions that PostgreSQL gave up on."""

from collections.abc import Callable

import pytest
from django.db import OperationalError, connection, transaction
from psycopg.errors import DeadlockDetected, QueryCanceled, SerializationFailure

from annotator.infrastructure.db.retries import TRIES, in_transaction

pytestmark = pytest.mark.django_db(transaction=True)


def failing(times: int, cause: type[Exception]) -> tuple[Callable[[], int], list[bool]]:
    """A stage that fails so many times, and a list with an entry a call: whether it had a transaction."""
    calls: list[bool] = []

    @in_transaction
    def stage() -> int:
        calls.append(connection.in_atomic_block)
        if len(calls) <= times:
            raise OperationalError("no") from cause("no")
        return len(calls)

    return stage, calls


@pytest.mark.parametrize("cause", [DeadlockDetected, SerializationFailure])
def test_it_is_tried_again_in_a_transaction_of_its_own(cause: type[Exception]) -> None:
    stage, calls = failing(2, cause)
    assert stage() == 3
    assert calls == [True, True, True]


def test_it_gives_up_in_the_end() -> None:
    stage, calls = failing(TRIES, DeadlockDetected)
    with pytest.raises(OperationalError):
        stage()
    assert len(calls) == TRIES


def test_other_failures_are_not_tried_again() -> None:
    stage, calls = failing(1, QueryCanceled)
    with pytest.raises(OperationalError):
        stage()
    assert len(calls) == 1


def test_inside_another_transaction_it_runs_once() -> None:
    stage, calls = failing(1, DeadlockDetected)
    with pytest.raises(OperationalError), transaction.atomic():
        stage()
    assert len(calls) == 1
