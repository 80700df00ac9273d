"""Imports files that people upload: the web keeps the file, the light worker imports it (infrastructure/jobs.py).

A job whose worker was lost goes on behind the last batch that was committed.
"""

from annotator.stages.importing.jobs.uploads import (
    KEPT,
    cancel,
    errors_csv,
    person_of_file,
    request,
    request_from_hub,
    sample_of,
    start,
    sweep,
    upload,
)
from annotator.stages.importing.jobs.work import run_waiting
