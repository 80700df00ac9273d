"""How long PostgreSQL works for a web request: seconds. Workers and commands take as long as they need."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from django.conf import settings
from django.db import Error, connection

LOCK_SECONDS = 10
IDLE_IN_TRANSACTION_SECONDS = 60


def limit_this_process() -> None:
    """Before its first connection; 0 in WEB_STATEMENT_SECONDS limits nothing."""
    if not (seconds := settings.WEB_STATEMENT_SECONDS):
        return
    options = cast("dict[str, Any]", settings.DATABASES["default"]["OPTIONS"])
    limits = {
        "statement_timeout": seconds,
        "lock_timeout": min(seconds, LOCK_SECONDS),
        "idle_in_transaction_session_timeout": max(seconds, IDLE_IN_TRANSACTION_SECONDS),
    }
    words = [f"-c {name}={1000 * limit}" for name, limit in limits.items()]
    options["options"] = " ".join([*words, options.get("options", "")]).strip()  # the operator's own come last and win


@contextmanager
def long_statements() -> Iterator[None]:
    """For a file that goes in or out: its statements may take WEB_FILE_STATEMENT_SECONDS."""
    if not settings.WEB_STATEMENT_SECONDS:
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, false)", [f"{settings.WEB_FILE_STATEMENT_SECONDS}s"])
    try:
        yield
    finally:
        _reset()


def streamed(rows: Iterable[bytes]) -> Iterator[bytes]:
    """The rows, made under `long_statements`."""
    with long_statements():
        yield from rows


def _reset() -> None:
    """The connection goes back to a pool, for anybody's request; one that broke does not."""
    if connection.needs_rollback:
        return
    try:
        with connection.cursor() as cursor:
            cursor.execute("RESET statement_timeout")
    except Error:
        connection.close()
