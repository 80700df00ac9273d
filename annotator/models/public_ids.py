"""The numbers by which tasks and responses are known outside: they say nothing of order, kind or how many there are.

Rows are numbered as they come, so a task that was imported among gold tasks would be known by its number. Outside, a
number is the row's own, permuted under a key that is made of SECRET_KEY: nothing has to be stored or looked up. A new
SECRET_KEY gives everything new numbers.
"""

import hashlib
from functools import lru_cache

from django.conf import settings

HALF_BITS = 26
"""Two halves make 52 bits: what JavaScript keeps exactly."""
MASK = (1 << HALF_BITS) - 1
LARGEST = (1 << 2 * HALF_BITS) - 1
ROUNDS = 6


def task_number(pk: int) -> int:
    """The public number of a task, from 0 to LARGEST."""
    return _permuted(settings.SECRET_KEY, b"task", pk)


def response_number(pk: int) -> int:
    """The public number of a response, from 0 to LARGEST."""
    return _permuted(settings.SECRET_KEY, b"response", pk)


def task_of(number: int) -> int | None:
    """The primary key of a task that need not exist; None beyond what can be a number."""
    return _restored(settings.SECRET_KEY, b"task", number) if 0 <= number <= LARGEST else None


def response_of(number: int) -> int | None:
    """The primary key of a response that need not exist; None beyond what can be a number."""
    return _restored(settings.SECRET_KEY, b"response", number) if 0 <= number <= LARGEST else None


@lru_cache(maxsize=1 << 16)
def _permuted(secret: str, kind: bytes, pk: int) -> int:
    left, right = divmod(pk, 1 << HALF_BITS)
    for keyed in _rounds(secret, kind):
        left, right = right, left ^ _mixed(keyed, right)
    return left << HALF_BITS | right


def _restored(secret: str, kind: bytes, number: int) -> int:
    left, right = divmod(number, 1 << HALF_BITS)
    for keyed in reversed(_rounds(secret, kind)):
        left, right = right ^ _mixed(keyed, left), left
    return left << HALF_BITS | right


def _mixed(keyed: "hashlib.blake2b", half: int) -> int:
    """One round of a Feistel network (Luby and Rackoff, 1988): a keyed hash of one half."""
    digest = keyed.copy()
    digest.update(half.to_bytes(4))
    return int.from_bytes(digest.digest()) & MASK


@lru_cache(maxsize=8)
def _rounds(secret: str, kind: bytes) -> tuple["hashlib.blake2b", ...]:
    """The hash of each round, with its key and nothing hashed yet."""
    key = hashlib.blake2b(secret.encode(), digest_size=32, person=b"public ids").digest()
    return tuple(hashlib.blake2b(digest_size=4, key=key, person=kind + bytes([turn])) for turn in range(ROUNDS))


class TaskIdConverter:
    """`<task:task_id>` in an address: the public number there, the row's own in the view."""

    regex = "[0-9]{1,16}"

    def to_python(self, value: str) -> int:
        task = task_of(int(value))
        if task is None:
            raise ValueError(value)
        return task

    def to_url(self, value: int) -> str:
        return str(task_number(value))
