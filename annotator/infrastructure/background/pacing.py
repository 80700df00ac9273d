"""Work that nobody waits for: done in slices, with rests between them while others use the database.

Others are an import, which writes to the same tables, and every session of PostgreSQL that is at work: of the web, for
people at pages and downloads, or of another worker. Workers run at a low priority (`nice`), but share PostgreSQL, its
locks and the processors' caches. PostgreSQL is asked rather than the kernel, which does not know a container's share
and sees one machine of several.
"""

import os
import time
from collections.abc import Callable
from datetime import timedelta

from django.db import connection

from annotator.infrastructure.db import locks
from annotator.infrastructure.db.clock import database_now
from annotator.models import ImportJob

REST, REST_BESIDE_IMPORT = 9, 19
"""A rest lasts so many times as long as the slice before it, so that a tenth of a process is still used, or a twentieth
beside an import, which somebody waits for and which ends soon."""
LONGEST_REST_SECONDS = 10.0
IMPORT_IS_ALIVE = timedelta(seconds=15)
"""An import signs every two seconds; one whose worker was killed is no reason to rest."""
_AT_WORK = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
    AND (state <> 'idle' OR state_change > clock_timestamp() - make_interval(secs => %s))
"""
JUST_NOW_SECONDS = 0.1
"""Who was at work just now counts as well: a download or a page does half of its work between two statements."""


def in_slices(work: Callable[[], int]) -> int:
    """Calls `work` until it returns 0, which says that nothing is left; returns the sum of its results.

    One slice should take less than a second.
    """
    total = 0
    while True:
        began = time.monotonic()
        done = work()
        total += done
        if not done:
            return total
        alive_since = database_now() - IMPORT_IS_ALIVE
        if ImportJob.objects.filter(state=ImportJob.State.WORKING, heartbeat_at__gt=alive_since).exists():
            rest = REST_BESIDE_IMPORT
        elif processors_left() < min(2, processors()):
            rest = REST
        else:
            continue
        time.sleep(min(rest * (time.monotonic() - began), LONGEST_REST_SECONDS))


def alone_in_slices(subject: str, number: int, work: Callable[[], int]) -> int:
    """Does what `in_slices` does, unless somebody is at the subject with this number already; returns 0 then.

    Beat asks for the same work every few seconds. Each of them would keep a thread of the light worker to itself, until
    none is left for what people wait for.
    """
    with locks.session_lock(subject, number) as is_alone:
        return in_slices(work) if is_alone else 0


def processors() -> int:
    return os.cpu_count() or 1


def processors_left() -> int:
    """Returns how many processors the other sessions leave that are at work, if each takes one."""
    with connection.cursor() as cursor:
        cursor.execute(_AT_WORK, [JUST_NOW_SECONDS])
        return processors() - int(cursor.fetchone()[0])
