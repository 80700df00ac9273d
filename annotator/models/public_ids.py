"""Public numbers of tasks and responses, which reveal nothing about their order, their kind or how many there are.

Primary keys follow the order of import, so that a task imported among gold tasks could be recognised by its number.
The public number is the primary key, permuted under a key that is derived from SECRET_KEY: nothing has to be stored or
looked up. A new SECRET_KEY gives every row a new number.
"""

import hashlib
from functools import lru_cache

from django.conf import settings

HALF_BITS = 26
"""Two halves make 52 bits, which a number in JavaScript holds exactly."""
MASK = (1 << HALF_BITS) - 1
LARGEST = (1 << 2 * HALF_BITS) - 1
ROUNDS = 6


def task_number(pk: int) -> int:
    """Returns the public number of a task, from 0 to LARGEST."""
    return _permuted(settings.SECRET_KEY, b"task", pk)


def response_number(pk: int) -> int:
    """Returns the public number of a response, from 0 to LARGEST."""
    return _permuted(settings.SECRET_KEY, b"response", pk)


def task_of(number: int) -> int | None:
    """Returns the primary key of a task, which need not exist, or None for a number outside 0 to LARGEST."""
    return _restored(settings.SECRET_KEY, b"task", number) if 0 <= number <= LARGEST else None


def response_of(number: int) -> int | None:
    """Returns the primary key of a response, which need not exist, or None for a number outside 0 to LARGEST."""
    return _restored(settings.SECRET_KEY, b"response", number) if 0 <= number <= LARGEST else None


# A number costs six hashes, and the same rows are answered again and again.
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
    """Returns a keyed hash of one half: the round function of a Feistel network (Luby and Rackoff, 1988)."""
    digest = keyed.copy()
    digest.update(half.to_bytes(4))
    return int.from_bytes(digest.digest()) & MASK


@lru_cache(maxsize=8)
def _rounds(secret: str, kind: bytes) -> tuple["hashlib.blake2b", ...]:
    """Returns the hash of each round, with its key set and nothing hashed yet."""
    # `person` gives each round, and tasks and responses, a function of their own.
    key = hashlib.blake2b(secret.encode(), digest_size=32, person=b"public ids").digest()
    return tuple(hashlib.blake2b(digest_size=4, key=key, person=kind + bytes([turn])) for turn in range(ROUNDS))


class TaskIdConverter:
    """Converts `<task:task_id>`: an address holds the public number, the view gets the primary key."""

    regex = "[0-9]{1,16}"

    def to_python(self, value: str) -> int:
        task = task_of(int(value))
        if task is None:
            # Django takes a ValueError for an address that does not match, which ends in a 404.
            raise ValueError(value)
        return task

    def to_url(self, value: int) -> str:
        return str(task_number(value))
