"""Has PostgreSQL read by its indexes where it would expect whole tables to be quicker, and would be wrong."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from annotator.db.statements import Statement

_PREPARE = Statement(
    """
    SELECT set_config(name, 'off', true)
    FROM unnest('{enable_seqscan,enable_mergejoin,enable_hashjoin}'::text[]) AS name
    UNION ALL SELECT set_config('max_parallel_workers_per_gather', '0', true)
    """,
    prepared=False,
)
_RESTORE = Statement(
    """
    SELECT set_config(name, reset_val, true) FROM pg_settings
    WHERE name IN ('enable_seqscan', 'enable_mergejoin', 'enable_hashjoin', 'max_parallel_workers_per_gather')
    """,
    prepared=False,
)


@contextmanager
def by_indexes() -> Iterator[None]:
    """Runs the block in a transaction whose statements look up each row, for statements that need few rows."""
    with transaction.atomic():
        _PREPARE.rows()
        yield
        # Within a larger transaction the settings would outlive this block.
        _RESTORE.rows()
