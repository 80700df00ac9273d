"""The process's clients of Redis, one for each patience."""

from functools import cache
from threading import Lock

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

from annotator.celery import PATIENCE_SECONDS

_connecting = Lock()


def connection(patience: float = PATIENCE_SECONDS, *, retries: int = 1) -> "redis.Redis":
    """Returns a client that waits `patience` seconds for each step; its pool gives each thread its own connection.

    A retry is for a connection that is stale because Redis was restarted; there is none after a timeout, as pages wait.
    """
    # Without the lock, `cache` would let several threads make a client each at the first call, and keep the last. The
    # other clients, which nobody references, would close their pools while a thread still reads from them.
    with _connecting:
        return _client(patience, retries)


@cache
def _client(patience: float, retries: int) -> "redis.Redis":
    retry = Retry(NoBackoff(), retries, supported_errors=(redis.ConnectionError,))
    limits = dict.fromkeys(("socket_timeout", "socket_connect_timeout"), patience)
    return redis.Redis.from_url(settings.REDIS_URL, retry=retry, **limits)
