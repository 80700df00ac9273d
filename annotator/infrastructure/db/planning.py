"""Has PostgreSQL read by its indexes where it would expect whole tables to be quicker, and would be wrong.

A block's statements look up each row, or join rows that indexes and sorting have put in order.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from django.db import connection, transaction
from django.db.models import Model

from annotator.infrastructure.db.statements import Statement

_SET = Statement(
    """
    SELECT set_config(name, 'off', %(local)s)
    FROM unnest(%(without)s::text[]) AS name
    UNION ALL SELECT set_config('max_parallel_workers_per_gather', '0', %(local)s)
    UNION ALL SELECT set_config('statement_timeout', %(limit)s, %(local)s) WHERE %(limit)s <> ''
    UNION ALL SELECT set_config('work_mem', %(memory)s, %(local)s)
    WHERE pg_size_bytes(%(memory)s) > pg_size_bytes(current_setting('work_mem'))
    """,
    prepared=False,
)
_RESET = Statement(
    """
    SELECT set_config(name, reset_val, %(local)s) FROM pg_settings WHERE name = 'statement_timeout' AND %(limited)s
        OR name = ANY(%(without)s) OR name = 'max_parallel_workers_per_gather'
        OR name = 'work_mem' AND %(memory)s <> '0'
    """,
    prepared=False,
)
# A way that is off costs so much, until PostgreSQL 17, that every statement would be compiled.
_BY_INDEXES = ["enable_seqscan", "enable_mergejoin", "enable_hashjoin", "jit"]
_BY_MERGING = ["enable_seqscan", "enable_nestloop", "jit"]
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
        _SET.rows(without=_BY_INDEXES, local=True, limit=f"{seconds}s", memory="0")
        yield
        # Within a larger transaction the settings would outlive this block.
        _RESET.rows(without=_BY_INDEXES, local=True, limited=True, memory="0")


def by_indexes_without_transaction() -> AbstractContextManager[None]:
    """Does the same for a block that lasts as long as a reader takes: it keeps no transaction open."""
    return _without(_BY_INDEXES, memory="0")


def by_merging_without_transaction() -> AbstractContextManager[None]:
    """Runs a block whose statements join by merging and hashing, and keeps no transaction open meanwhile.

    A table that is joined without a condition of its own would be read as a whole. What is LATERAL is still looked up
    row by row.
    """
    return _without(_BY_MERGING, memory="16MB")


@contextmanager
def _without(ways: Sequence[str], *, memory: str) -> Iterator[None]:
    """Runs the block without these ways to plan, and with at least so much memory for each sorting."""
    _SET.rows(without=ways, local=False, limit="", memory=memory)
    try:
        yield
    finally:
        # In a transaction that failed no statement can run, and the end of it takes the settings back.
        raw = connection.connection
        if not (connection.needs_rollback or raw is None or raw.info.transaction_status.name == "INERROR"):
            _RESET.rows(without=ways, local=False, limited=False, memory=memory)
