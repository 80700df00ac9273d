"""Gives every process the time by one clock, the database's, for all times that processes compare with each other.

One host writes leases, heartbeats and deadlines, and another reads them; their own clocks may be minutes apart. To
avoid a query at every claim, each process measures once a minute how far its steady clock, which no correction moves,
is from the database's. In a minute two crystals drift apart by milliseconds; the shortest time compared is seconds.
"""

import sys
import time
from datetime import UTC, datetime

from django.db import connection

MEASURED_FOR_SECONDS = 60
_offset = 0.0
_measured_at: float | None = None


def database_now() -> datetime:
    """Returns the time by the database's clock, and measures that clock if the last measurement is a minute old."""
    global _offset, _measured_at
    before = _steady_seconds()
    if _measured_at is None or before - _measured_at > MEASURED_FOR_SECONDS:
        # clock_timestamp() gives the present time; now() would give the time at which the transaction began. The query
        # bypasses Django's cursors, so that it is not counted among the queries of the caller.
        connection.ensure_connection()
        with connection.wrap_database_errors:
            row = connection.connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
        database = float(row[0])
        after = _steady_seconds()
        # The answer is taken to be from the middle of the round trip, so the error is at most half of the round trip.
        _offset, _measured_at = database - (before + after) / 2, after
    return datetime.fromtimestamp(_steady_seconds() + _offset, UTC)


def _steady_seconds() -> float:
    """Returns seconds since an arbitrary moment; on Linux they include those during which the machine slept."""
    # Without them, the time would lag by the length of the sleep until the next measurement.
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()
