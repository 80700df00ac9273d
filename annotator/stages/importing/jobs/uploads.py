"""The web's side of imports: a file is kept, started, cancelled, and swept away once nobody needs it."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.expressions import RawSQL
from django.utils.translation import gettext as _

from annotator.infrastructure import audit
from annotator.infrastructure.background import heartbeats, messages
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.spreadsheets import csv_lines
from annotator.infrastructure.storage import artifacts, disk_space, store, working_copies
from annotator.models import Import, ImportJob, Project, User
from annotator.reading.in_use import require_in_use
from annotator.stages.importing import hub_files, samples
from annotator.stages.importing.batches import shown_name
from annotator.stages.importing.expansion_limits import UnreadableFile
from annotator.stages.importing.layouts.ratings import person_of
from annotator.stages.importing.mapped_rows import require_columns
from annotator.stages.importing.mappings import ColumnMapping

MOST_WITH_FILE = 20
"""The jobs of a project that may hold a file on the disk at once."""
KEPT = timedelta(days=30)
"""How long a job that has ended is listed, with the errors of its rows."""
_NOBODY_STARTED = "Nobody started the import within a day, so the file was deleted. To import it, upload it again."
State = ImportJob.State
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
    return person_of(hub_files.parsed(job.hub).path) if job.hub else ""


def remove_files(job: ImportJob) -> None:
    store.discard(job.directory())


def upload(project: Project, read: Callable[[int], bytes], *, file_name: str, by: User, now: datetime) -> ImportJob:
    """Keeps the file, which `read` returns piece by piece, and takes a sample of its rows. A file that cannot be read
    makes a job that has failed and says why.

    Raises:
        Refusal: The file is not kept.
        DiskNearlyFull, ForeignArtifacts, StoreAway: There is no room for it, or no place.
    """
    require_in_use(project)
    artifacts.require_ours()
    disk_space.require_room()
    require_places(project, 1, now=now)
    if store.is_remote():
        # A host with a web server alone has nobody else who removes what a killed process has left.
        _remove_unneeded(list((Path(settings.ARTIFACTS) / "imports").glob("*")), now=now)
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
        else:
            store.put(job.directory())
            store.forget_here(job.directory())
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


def request_from_hub(
    project: Project,
    name: str,
    *,
    by: User,
    now: datetime,
    dry_run: bool = False,
    mapping: ColumnMapping | None = None,
    fetch_only: bool = False,
) -> ImportJob:
    """Has the light worker fetch a public data set, a folder or a file of it, and import it.

    With `fetch_only` each file waits for somebody to look at it and start it, as an upload does.

    Raises:
        Refusal, BadHubName: Nothing is fetched.
        DiskNearlyFull, ForeignArtifacts, Refusal: Nothing can be fetched now.
    """
    meant = hub_files.parsed(name)
    require_in_use(project)
    artifacts.require_ours()
    disk_space.require_room()
    require_places(project, 1, now=now)
    heartbeats.require("light")
    with transaction.atomic():
        job = ImportJob.objects.create(
            project=project,
            requested_by=by,
            hub=str(meant),
            fetch_only=fetch_only,
            file_name=shown_name(meant.path or meant.repository),
            created_at=now,
            state=State.WAITING,
            dry_run=dry_run,
            mapping=mapping.as_json() if mapping else None,
        )
        audit.record("import.requested", subject(job), project=project, hub=str(meant))
        messages.send_on_commit("annotator.tasks.run_imports")
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
    may_start = job.state == State.UPLOADED or job.was_checked()
    if not (may_start and job.file_hash and store.has(file_of(job))):
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
    rest = _remove_unneeded(store.places_in("imports"), now=now)
    named = ImportJob.objects.filter(mapping__has_key="rated_by")
    named.exclude(pk__in=ImportJob.objects.with_file(now=now)).update(mapping=RawSQL("mapping - 'rated_by'", ()))
    return rest


working_copies.sweeps.append(lambda: sweep(now=database_now()))


def _remove_unneeded(folders: Sequence[Path], *, now: datetime) -> int:
    # The folders were listed before the rows: one that is made meanwhile has its row already.
    needed = {str(pk) for pk in ImportJob.objects.with_file(now=now).values_list("pk", flat=True)}
    rest = [folder for folder in folders if folder.name not in needed]
    store.discard(*rest)
    return len(rest)


def errors_csv(job: ImportJob) -> Iterator[bytes]:
    """Yields the kept errors as CSV that spreadsheets can open safely."""
    columns = ("line", "field", "error")
    return csv_lines(job.errors.order_by("pk").values(*columns).iterator(), columns)
