"""The web's side of imports: a file is kept, started, cancelled."""

from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from annotator import audit
from annotator.background import heartbeats, messages
from annotator.db.clock import database_now
from annotator.importing import samples
from annotator.importing.batches import shown_name
from annotator.importing.expansion_limits import UnreadableFile
from annotator.importing.jobs.files import file_of, keep, remove_files, sample_file_of
from annotator.importing.mappings import ColumnMapping, require_columns
from annotator.models import ImportJob, Project, User
from annotator.reading.in_use import require_in_use
from annotator.refusals import Refusal
from annotator.storage import artifacts, disk_space

MOST_WITH_FILE = 20
"""The jobs of a project that may hold a file on the disk at once."""
State = ImportJob.State


def upload(project: Project, read: Callable[[int], bytes], *, file_name: str, by: User, now: datetime) -> ImportJob:
    """Keeps the file, which `read` returns piece by piece, and takes a sample of its rows. A file that cannot be read
    makes a job that has failed and says why.

    Raises:
        Refusal: The file is not kept.
        DiskNearlyFull, ForeignArtifacts: There is no room for it, or the folder is not this installation's.
    """
    require_in_use(project)
    artifacts.require_ours()
    disk_space.require_room()
    require_places(project, 1, now=now)
    job = ImportJob.objects.create(
        project=project, requested_by=by, file_name=shown_name(file_name), created_at=now, state=State.UPLOADED
    )
    # After the row is there: the sweep removes folders without one.
    with ExitStack() as undone:
        undone.callback(forget, job)
        job.file_hash, job.file_bytes = keep(read, job)
        try:
            samples.keep(samples.take(file_of(job)), sample_file_of(job))
        except UnreadableFile as unreadable:
            job.state, job.error, job.finished_at = State.FAILED, str(unreadable), database_now()
        with transaction.atomic():
            job.save(update_fields=["file_hash", "file_bytes", "state", "error", "finished_at"])
            audit.record("import.uploaded", subject(job), project=project, bytes=job.file_bytes)
        undone.pop_all()
    if job.state == State.FAILED:
        remove_files(job)
    return job


def require_places(project: Project, number: int, *, now: datetime) -> None:
    """Raises Refusal unless the project may hold so many further files on the disk."""
    held = ImportJob.objects.with_file(now=now).filter(project=project).count()
    if number and held + number > MOST_WITH_FILE:
        text = _(
            "A project can hold %(most)s pending import files, already has %(held)s, and %(number)s would be added. "
            "Import or discard some first, or name a smaller part."
        )
        raise Refusal(text % {"most": MOST_WITH_FILE, "held": held, "number": number}, code="too_many_files")


def forget(job: ImportJob) -> None:
    remove_files(job)
    ImportJob.objects.filter(pk=job.pk).delete()


def request(
    project: Project,
    read: Callable[[int], bytes],
    *,
    file_name: str,
    by: User,
    now: datetime,
    dry_run: bool,
    mapping: ColumnMapping | None,
) -> ImportJob:
    """Uploads the file and starts its import. After a refusal of `upload` or `start` nothing stays."""
    heartbeats.require("light")  # before the file is read
    job = upload(project, read, file_name=file_name, by=by, now=now)
    if job.state == State.FAILED:
        return job
    with ExitStack() as undone:
        undone.callback(forget, job)
        job = start(job, dry_run=dry_run, mapping=mapping)
        undone.pop_all()
    return job


def sample_of(job: ImportJob) -> samples.Sample:
    """Returns the first rows of the job's file."""
    return samples.kept(sample_file_of(job))


def start(job: ImportJob, *, dry_run: bool, mapping: ColumnMapping | None) -> ImportJob:
    """Has the light worker import the file, or only check it. A file that was checked can be started again.

    Raises:
        Refusal: The project is archived.
        Refusal: The job is under way, or its file is gone.
        MissingColumn: The mapping names a column that the file does not have.
        Refusal: Nobody listens to the queue `light`.
    """
    require_in_use(job.project)
    if not _may_start(job):
        raise Refusal(
            _("The import is under way, or its file is gone. To import the file again, upload it again."),
            code="not_startable",
        )
    if mapping:
        require_columns(mapping, sample_of(job).columns)
    disk_space.require_room()
    heartbeats.require("light")
    with transaction.atomic():
        # By its state and attempt: of two that start it at once, one goes on.
        fresh = ImportJob.objects.filter(pk=job.pk, state=job.state, dry_run=job.dry_run, finished_at=job.finished_at)
        started = fresh.update(
            state=State.WAITING,
            dry_run=dry_run,
            mapping=mapping.as_json() if mapping else None,
            attempt=F("attempt") + 1,
            **_UNREAD,
        )
        if not started:
            raise Refusal(_("Somebody else has started or cancelled this import a moment ago."), code="not_startable")
        job.errors.all().delete()
        audit.record("import.started", subject(job), project=job.project, dry_run=dry_run, mapped=bool(mapping))
        messages.send_on_commit("annotator.tasks.run_imports")
    return refreshed(job)


_UNREAD: dict[str, Any] = {
    "tries": 0,
    "bytes_read": 0,
    "rows_done": 0,
    "has_answers": False,
    "created": 0,
    "existing": 0,
    "rejected": 0,
    "ratings_added": 0,
    "ratings_left_out": 0,
    "layouts": [],
    "notes": {},
    "rules": "",
    "error": "",
    "heartbeat_at": None,
    "finished_at": None,
}


def _may_start(job: ImportJob) -> bool:
    return (job.state == State.UPLOADED or job.was_checked()) and bool(job.file_hash) and file_of(job).is_file()


def cancel(job: ImportJob) -> ImportJob:
    """Ends a job, or discards the file of one that was only checked. Tasks that are in stay, and can be taken back.

    Raises:
        Refusal: There is nothing to cancel.
    """
    with transaction.atomic():
        # The row's lock waits for the batch that is being written; the worker's next one finds the job cancelled.
        row = ImportJob.objects.select_for_update().get(pk=job.pk)
        if not row.is_active() and not row.was_checked():
            raise Refusal(
                _("This import has ended. What it imported can be taken back in the list of imports."),
                code="already_ended",
            )
        was_working = row.state == State.WORKING
        row.state, row.finished_at = State.CANCELLED, database_now()
        row.save(update_fields=["state", "finished_at"])
        audit.record("import.cancelled", subject(job), project=job.project)
        if not was_working:  # the worker removes the files of its own job, once it has stopped
            transaction.on_commit(partial(remove_files, row))
    return refreshed(job)


def subject(job: ImportJob) -> str:
    return f"file {job.file_name}" if job.file_name else "a file"


def refreshed(job: ImportJob) -> ImportJob:
    return ImportJob.objects.select_related("project", "requested_by").get(pk=job.pk)
