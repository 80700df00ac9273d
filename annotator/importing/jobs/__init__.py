"""Imports files that people upload: the web keeps the file, the light worker imports it, the row says how far it is.

The row is the truth. Messages carry nothing but the wish that somebody looks, and beat sends one again and again. One
thread of one worker imports at a time, under a lock that PostgreSQL releases with its process: a job that is being
worked on while the lock is free has lost its worker, and goes on behind the last batch that was committed.
"""

from annotator.importing.jobs.fetching import request_from_hub
from annotator.importing.jobs.files import person_of_file
from annotator.importing.jobs.leftovers import KEPT, sweep
from annotator.importing.jobs.uploads import cancel, request, sample_of, start, upload
from annotator.importing.jobs.work import ATTEMPTS, run_waiting

__all__ = [
    "ATTEMPTS",
    "KEPT",
    "cancel",
    "person_of_file",
    "request",
    "request_from_hub",
    "run_waiting",
    "sample_of",
    "start",
    "sweep",
    "upload",
]
