"""Has PostgreSQL read by its indexes where it would expect whole tables to be quicker, and would be wrong."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction
from django.db.models import Model

from annotator.db.statements import Statement

_SET = Statement(
    """
    SELECT set_config(name, 'off', %(local)s)
    FROM unnest('{enable_seqscan,enable_mergejoin,enable_hashjoin}'::text[]) AS name
    UNION ALL SELECT set_config('max_parallel_workers_per_gather', '0', %(local)s)
    UNION ALL SELECT set_config('statement_timeout', %(limit)s, %(local)s) WHERE %(limit)s <> ''
    """,
    prepared=False,
)
_RESET = Statement(
    """
    SELECT set_config(name, reset_val, %(local)s) FROM pg_settings WHERE name = 'statement_timeout' AND %(limited)s
        OR name IN ('enable_seqscan', 'enable_mergejoin', 'enable_hashjoin', 'max_parallel_workers_per_gather')
    """,
    prepared=False,
)


_SMALLER = Statement(
    "SELECT relname FROM pg_class WHERE oid = ANY(%(tables)s::regclass[]) AND reltuples < %(rows)s", prepared=False
)
LITTLE = 10
"""A table to which a tenth of its rows or less is added keeps its statistics, as it does by PostgreSQL's own rule."""


def take_statistics(*tables: type[Model], added: int | None = None) -> None:
    """Has PostgreSQL look at the tables before long work on them; it passes over one that it is looking at already.

    Of a table that has just been filled it knows nothing yet, and may read all of it for every row of another one.
    Where so many rows were `added`, tables to which they are little are left out: a look at a large one takes a while.
    """
    wanted = [table._meta.db_table for table in tables]
    if added is not None:
        wanted = [name for (name,) in _SMALLER.rows(tables=wanted, rows=LITTLE * added)]
    if not wanted:
        return
    names = ", ".join(map(connection.ops.quote_name, wanted))
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE (SKIP_LOCKED) {names}")


@contextmanager
def by_indexes(*, seconds: int) -> Iterator[None]:
    """Runs the block in a transaction whose statements look up each row, for at most so many seconds each."""
    with transaction.atomic():
        _SET.rows(local=True, limit=f"{seconds}s")
        yield
        # Within a larger transaction the settings would outlive this block.
        _RESET.rows(local=True, limited=True)


@contextmanager
def by_indexes_without_transaction() -> Iterator[None]:
    """Does the same for a block that lasts as long as a reader takes: it keeps no transaction open."""
    _SET.rows(local=False, limit="")
    try:
        yield
    finally:
        # In a transaction that failed no statement can run, and the end of it takes the settings back.
        if not (connection.needs_rollback or _has_failed()):
            _RESET.rows(local=False, limited=False)


def _has_failed() -> bool:
    return connection.connection is None or connection.connection.info.transaction_status.name == "INERROR"
