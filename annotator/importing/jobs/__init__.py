"""Imports files that people upload: the web keeps the file, the light worker imports it (annotator/background/jobs.py).

A job whose worker was lost goes on behind the last batch that was committed.
"""

from annotator.importing.jobs.fetching import request_from_hub
from annotator.importing.jobs.files import person_of_file
from annotator.importing.jobs.leftovers import KEPT, sweep
from annotator.importing.jobs.uploads import cancel, request, sample_of, start, upload
from annotator.importing.jobs.work import run_waiting
