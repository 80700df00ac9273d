"""Limits how many seconds PostgreSQL works for a web request. Workers and commands take as long as they need."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from django.conf import settings
from django.db import Error, connection

LOCK_SECONDS = 10
IDLE_IN_TRANSACTION_SECONDS = 60


def limit_this_process() -> None:
    """Limits the statements of this process; has to be called before its first connection.

    WEB_STATEMENT_SECONDS = 0 sets no limits.
    """
    if not (seconds := settings.WEB_STATEMENT_SECONDS):
        return
    options = cast("dict[str, Any]", settings.DATABASES["default"]["OPTIONS"])
    # The lock's limit is shorter: a request that waits for a lock keeps one of the few threads and connections. A
    # transaction that the web leaves open would keep its row locks, so PostgreSQL ends it.
    limits = {
        "statement_timeout": seconds,
        "lock_timeout": min(seconds, LOCK_SECONDS),
        "idle_in_transaction_session_timeout": max(seconds, IDLE_IN_TRANSACTION_SECONDS),
    }
    words = [f"-c {name}={1000 * limit}" for name, limit in limits.items()]
    # The operator's own options come last, because the last setting of a name wins.
    options["options"] = " ".join([*words, options.get("options", "")]).strip()


@contextmanager
def long_statements() -> Iterator[None]:
    """Lets the statements of an upload or download take up to WEB_FILE_STATEMENT_SECONDS."""
    if not settings.WEB_STATEMENT_SECONDS:
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, false)", [f"{settings.WEB_FILE_STATEMENT_SECONDS}s"])
    try:
        yield
    finally:
        # The connection returns to a pool, where it serves anybody's request, which must not inherit the longer limit.
        # In a transaction that is to be rolled back no statement can run.
        if not connection.needs_rollback:
            try:
                with connection.cursor() as cursor:
                    cursor.execute("RESET statement_timeout")
            except Error:
                connection.close()


def streamed(rows: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the rows, which are computed under `long_statements`."""
    with long_statements():
        yield from rows
