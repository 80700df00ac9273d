"""Uploads that nobody started, and files and rows that nobody needs any more."""

import shutil
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models.expressions import RawSQL

from annotator.models import Import, ImportJob
from annotator.storage import artifacts

KEPT = timedelta(days=30)
"""How long a job that has ended is listed, with the errors of its rows."""
_NOBODY_STARTED = "Nobody started the import within a day, so the file was deleted. To import it, upload it again."
State = ImportJob.State


def sweep(*, now: datetime) -> int:
    """Ends uploads that nobody started, and removes files and empty Import rows that nobody needs any more.

    With a file goes the name of whoever rated it, which nothing else stores.

    Returns the number of folders that it removed. Raises ForeignArtifacts.
    """
    artifacts.require_ours()
    forgotten = ImportJob.objects.filter(state=State.UPLOADED, created_at__lt=now - ImportJob.FILE_KEPT)
    forgotten.filter(file_hash="").delete()  # the web process was killed while the file arrived
    forgotten.update(state=State.CANCELLED, error=_NOBODY_STARTED, finished_at=now)
    # Of jobs that were cancelled while their worker was killed.
    Import.objects.filter(jobs__state__in=(State.CANCELLED, State.FAILED), created=0).delete()
    ImportJob.objects.filter(finished_at__lt=now - KEPT).delete()
    # The folders are listed before the rows: one that is made meanwhile has its row already.
    folders = list((settings.ARTIFACTS / "imports").glob("*"))
    needed = {str(pk) for pk in ImportJob.objects.with_file(now=now).values_list("pk", flat=True)}
    rest = [folder for folder in folders if folder.name not in needed]
    for folder in rest:
        shutil.rmtree(folder, ignore_errors=True)
    named = ImportJob.objects.filter(mapping__has_key="rated_by")
    named.exclude(pk__in=ImportJob.objects.with_file(now=now)).update(mapping=RawSQL("mapping - 'rated_by'", ()))
    return len(rest)
