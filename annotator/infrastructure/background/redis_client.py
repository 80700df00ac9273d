"""The process's client of Redis."""

from functools import cache
from threading import Lock

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

from annotator.celery import PATIENCE_SECONDS

_connecting = Lock()


def connection() -> "redis.Redis":
    """Returns the only client, whose pool gives each thread a connection of its own."""
    # Without the lock, `cache` would let several threads make a client each at the first call, and keep the last. The
    # other clients, which nobody references, would close their pools while a thread still reads from them.
    with _connecting:
        return _client()


@cache
def _client() -> "redis.Redis":
    # One retry, for a connection that is stale because Redis was restarted; none after a timeout, as pages wait for us.
    retry = Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,))
    patience = dict.fromkeys(("socket_timeout", "socket_connect_timeout"), PATIENCE_SECONDS)
    return redis.Redis.from_url(settings.REDIS_URL, retry=retry, **patience)
