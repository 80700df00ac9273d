"""One clock for everything that processes compare with each other: the database's.

Leases, heartbeats and deadlines are written by one host and read by another, whose own clocks may be minutes apart.
Nobody asks the database for the time at every claim, though: each process knows by how much its steady clock, which
no correction moves, is away from the database's, and finds it out anew every minute. In a minute two crystals drift
apart by milliseconds; the shortest time that is compared is seconds.
"""

import sys
import time
from datetime import UTC, datetime

from django.db import connection

MEASURED_FOR_SECONDS = 60
_offset = 0.0
_measured_at: float | None = None


def database_now() -> datetime:
    """The time by the database's clock. Asks for it where the last answer is a minute old."""
    global _offset, _measured_at
    before = _steady()
    if _measured_at is None or before - _measured_at > MEASURED_FOR_SECONDS:
        asked = _asked()
        after = _steady()
        _offset, _measured_at = asked - (before + after) / 2, after
    return datetime.fromtimestamp(_steady() + _offset, UTC)


def _steady() -> float:
    """Seconds, those included in which the machine slept; from when on means nothing."""
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def _asked() -> float:
    """Seconds since 1970; within a transaction too it is the time now, not that of its beginning.

    Beside Django's cursors: it is no query of whatever the caller does.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors:
        row = connection.connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
    return float(row[0])
