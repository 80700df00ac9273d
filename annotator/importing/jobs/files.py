"""The file of an import and the sample of its rows, in a folder of the job's own."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from django.utils.translation import gettext as _

from annotator.importing import hub
from annotator.importing.layouts.ratings import person_of
from annotator.models import ImportJob
from annotator.refusals import Refusal
from annotator.storage import disk_space

_CHUNK = 1 << 20


def keep(read: Callable[[int], bytes], job: ImportJob) -> tuple[str, int]:
    """Writes the file; returns its hash and its size."""
    job.directory().mkdir(parents=True)
    digest = hashlib.sha256()
    with file_of(job).open("xb") as kept:
        while block := read(_CHUNK):
            disk_space.require_room(extra=len(block))
            digest.update(block)
            kept.write(block)
        if not kept.tell():
            raise Refusal(_("The file is empty. Choose a file with one row at least."), code="empty_file", status=400)
        return digest.hexdigest(), kept.tell()


def file_of(job: ImportJob) -> Path:
    # Not under its own name, which somebody else chose.
    return job.directory() / "file"


def sample_file_of(job: ImportJob) -> Path:
    return job.directory() / "sample.json"


def person_of_file(job: ImportJob) -> str:
    """Returns whose ratings the job's file holds, if its folder on the Hub says so."""
    return person_of(hub.parsed(job.hub).path) if job.hub else ""


def remove_files(job: ImportJob) -> None:
    shutil.rmtree(job.directory(), ignore_errors=True)
