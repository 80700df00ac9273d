"""Imports files that people upload: the web keeps the file, the light worker imports it, the row says how far it is.

The row is the truth. Messages carry nothing but the wish that somebody looks, and beat sends one again and again. One
thread of one worker imports at a time, under a lock that PostgreSQL releases with its process: a job that is being
worked on while the lock is free has lost its worker, and goes on behind the last batch that was committed.
"""

import gc
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import F, QuerySet
from django.utils.translation import gettext as _

from annotator import audit
from annotator.background import heartbeats, messages
from annotator.background.failures import safe_text
from annotator.db import locks
from annotator.db.clock import database_now
from annotator.importing import samples
from annotator.importing.batches import Batch, ImportResult, Journal, record, shown_name, write_batches
from annotator.importing.expansion_limits import Incoming, UnreadableFile
from annotator.importing.mappings import ColumnMapping, read_mapping, require_columns
from annotator.models import Import, ImportJob, ImportJobError, Project, User
from annotator.projects.archive import require_in_use
from annotator.refusals import Refusal
from annotator.storage import artifacts, disk_space
from annotator.storage.hidden_paths import without_places

ATTEMPTS = 3
MOST_WITH_FILE = 20
"""The jobs of a project that may hold a file on the disk at once."""
KEPT = timedelta(days=30)
"""How long a job that has ended is listed, with the errors of its rows."""
BEAT_SECONDS = 2.0
_CHUNK = 1 << 20
_LOST = (
    f"The worker or the database was lost in each of {ATTEMPTS} attempts. Check their logs and their memory, then "
    "import the file again: tasks that are in already are recognised."
)
_NOBODY_STARTED = "Nobody started the import within a day, so the file was deleted. To import it, upload it again."
State = ImportJob.State


class TooManyFiles(Refusal):
    """The project has as many uploaded files as it may have."""

    code = "too_many_files"


class EmptyFile(Refusal):
    """The file holds nothing."""

    status = 400
    code = "empty_file"


class NotStartable(Refusal):
    """The job is under way, or its file is gone."""

    code = "not_startable"


class AlreadyEnded(Refusal):
    """The job has ended, so there is nothing to cancel."""

    code = "already_ended"


class RulesChanged(Refusal):
    """The project reads rows by other rules than when the import began."""

    code = "rules_changed"


class _Ended(Exception):
    """Somebody cancelled the job, another worker has it, or it is gone with its project."""


class _PutDown(Exception):
    """The worker was asked to stop in the middle of the job."""


# The web's side --------------------------------------------------------------------------------------------


def upload(project: Project, read: Callable[[int], bytes], *, file_name: str, by: User, now: datetime) -> ImportJob:
    """Keeps the file, which `read` returns piece by piece, and takes a sample of its rows. A file that cannot be read
    makes a job that has failed and says why.

    Raises:
        Archived, TooManyFiles, EmptyFile: The file is not kept.
        DiskNearlyFull, ForeignArtifacts: There is no room for it, or the folder is not this installation's.
    """
    require_in_use(project)
    artifacts.require_ours()
    disk_space.require_room()
    if ImportJob.objects.with_file(now=now).filter(project=project).count() >= MOST_WITH_FILE:
        text = _("%(number)s uploaded files are waiting. Import some of them, or discard them.")
        raise TooManyFiles(text % {"number": MOST_WITH_FILE})
    job = ImportJob.objects.create(
        project=project, requested_by=by, file_name=shown_name(file_name), created_at=now, state=State.UPLOADED
    )
    # After the row is there: the sweep removes folders without one.
    with ExitStack() as undone:
        undone.callback(_forget, job)
        job.file_hash, job.file_bytes = _keep(read, job)
        try:
            samples.keep(samples.take(_file(job)), _sample_file(job))
        except UnreadableFile as unreadable:
            job.state, job.error, job.finished_at = State.FAILED, str(unreadable), database_now()
        with transaction.atomic():
            job.save(update_fields=["file_hash", "file_bytes", "state", "error", "finished_at"])
            audit.record("import.uploaded", _subject(job), project=project, bytes=job.file_bytes)
        undone.pop_all()
    if job.state == State.FAILED:
        _remove_files(job)
    return job


def _keep(read: Callable[[int], bytes], job: ImportJob) -> tuple[str, int]:
    """Writes the file; returns its hash and its size."""
    job.directory().mkdir(parents=True)
    digest = hashlib.sha256()
    with _file(job).open("xb") as kept:
        while block := read(_CHUNK):
            disk_space.require_room(extra=len(block))
            digest.update(block)
            kept.write(block)
        if not kept.tell():
            raise EmptyFile(_("The file is empty. Choose a file with one row at least."))
        return digest.hexdigest(), kept.tell()


def _forget(job: ImportJob) -> None:
    _remove_files(job)
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
        undone.callback(_forget, job)
        job = start(job, dry_run=dry_run, mapping=mapping)
        undone.pop_all()
    return job


def sample_of(job: ImportJob) -> samples.Sample:
    """Returns the first rows of the job's file."""
    return samples.kept(_sample_file(job))


def start(job: ImportJob, *, dry_run: bool, mapping: ColumnMapping | None) -> ImportJob:
    """Has the light worker import the file, or only check it. A file that was checked can be started again.

    Raises:
        Archived: The project is archived.
        NotStartable: The job is under way, or its file is gone.
        MissingColumn: The mapping names a column that the file does not have.
        NoWorker: Nobody listens to the queue `light`.
    """
    require_in_use(job.project)
    if not _may_start(job):
        raise NotStartable(
            _("The import is under way, or its file is gone. To import the file again, upload it again.")
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
            raise NotStartable(_("Somebody else has started or cancelled this import a moment ago."))
        job.errors.all().delete()
        audit.record("import.started", _subject(job), project=job.project, dry_run=dry_run, mapped=bool(mapping))
        messages.send_on_commit("annotator.tasks.run_imports")
    return _fresh(job)


_UNREAD: dict[str, Any] = {
    "tries": 0,
    "bytes_read": 0,
    "rows_done": 0,
    "created": 0,
    "existing": 0,
    "rejected": 0,
    "layouts": [],
    "rules": "",
    "error": "",
    "heartbeat_at": None,
    "finished_at": None,
}


def _may_start(job: ImportJob) -> bool:
    return (job.state == State.UPLOADED or job.was_checked()) and bool(job.file_hash) and _file(job).is_file()


def cancel(job: ImportJob) -> ImportJob:
    """Ends a job, or discards the file of one that was only checked. Tasks that are in stay, and can be taken back.

    Raises:
        AlreadyEnded: There is nothing to cancel.
    """
    with transaction.atomic():
        # The row's lock waits for the batch that is being written; the worker's next one finds the job cancelled.
        row = ImportJob.objects.select_for_update().get(pk=job.pk)
        if not row.is_active() and not row.was_checked():
            raise AlreadyEnded(_("This import has ended. What it imported can be taken back in the list of imports."))
        was_working = row.state == State.WORKING
        row.state, row.finished_at = State.CANCELLED, database_now()
        row.save(update_fields=["state", "finished_at"])
        audit.record("import.cancelled", _subject(job), project=job.project)
        if not was_working:  # the worker removes the files of its own job, once it has stopped
            transaction.on_commit(partial(_remove_files, row))
    return _fresh(job)


def _subject(job: ImportJob) -> str:
    return f"file {job.file_name}" if job.file_name else "a file"


def _fresh(job: ImportJob) -> ImportJob:
    return ImportJob.objects.select_related("project", "requested_by").get(pk=job.pk)


def _file(job: ImportJob) -> Path:
    # Not under its own name, which somebody else chose.
    return job.directory() / "file"


def _sample_file(job: ImportJob) -> Path:
    return job.directory() / "sample.json"


def _remove_files(job: ImportJob) -> None:
    shutil.rmtree(job.directory(), ignore_errors=True)


# The worker's side -----------------------------------------------------------------------------------------


def run_waiting() -> int:
    """Imports what waits, one file after the other; returns how many jobs have ended."""
    ended = 0
    with locks.session_lock("import jobs") as is_alone:
        while is_alone and not heartbeats.stopping.is_set() and (job := _claimed()):
            _carry_out(job)
            ended += 1
    return ended


def _claimed() -> ImportJob | None:
    """Takes the oldest job. Whoever holds the lock is alone, so one that is being worked on has lost its worker."""
    under_way = ImportJob.objects.filter(state__in=(State.WAITING, State.WORKING))
    for job in under_way.select_related("project", "requested_by", "import_row").order_by("pk"):
        if job.tries >= ATTEMPTS:
            job.attempt += 1
            if under_way.filter(pk=job.pk, attempt=job.attempt - 1).update(attempt=job.attempt, state=State.WORKING):
                _end(job, State.FAILED, _LOST)
                _remove_files(job)
            continue
        # One conditional UPDATE decides; the attempt fences off the writes of every earlier worker.
        taken = under_way.filter(pk=job.pk, attempt=job.attempt).update(
            state=State.WORKING, attempt=F("attempt") + 1, tries=F("tries") + 1, heartbeat_at=database_now()
        )
        if taken:
            job.attempt, job.tries, job.state = job.attempt + 1, job.tries + 1, State.WORKING
            return job
    return None


def _carry_out(job: ImportJob) -> None:
    try:
        _import(job)
    except _Ended:
        if _finish_cancelled(job):  # otherwise another worker has the job, and needs the file
            _remove_files(job)
        return
    except _PutDown:
        # Not the job's fault: the next worker has as many attempts as this one had.
        _owned(job).update(state=State.WAITING, tries=F("tries") - 1)
        return
    except Refusal as refused:
        _end(job, State.FAILED, str(refused))
    except (OperationalError, InterfaceError):
        # The database is away: the job stays as it is, and is taken up again when it is back.
        raise
    except Exception as error:
        _end(job, State.FAILED, safe_text(error))
        _clear(job)
        raise
    else:
        _end(job, State.DONE)
    _clear(job)


def _clear(job: ImportJob) -> None:
    if not job.dry_run:
        _remove_files(job)


def _import(job: ImportJob) -> None:
    mapping = read_mapping(job.mapping) if job.mapping else None
    _require_same_rules(job)
    if not _file(job).is_file():
        raise NotStartable("The file is not where this worker looks for it. Upload it again.")
    now = database_now()
    import_row = None if job.dry_run else job.import_row or _begin(job, now)
    with _file(job).open("rb") as file, _few_garbage_collections():
        write_batches(
            job.project,
            _Followed(file, job),
            _result_so_far(job),
            now=now,
            mapping=mapping,
            import_row=import_row,
            journal=_Progress(job),
        )


@contextmanager
def _few_garbage_collections() -> Iterator[None]:
    """Looks for garbage once in a batch: rows form no cycles, and looking among them took a fifth of the time."""
    usual = gc.get_threshold()
    gc.set_threshold(100_000, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def _require_same_rules(job: ImportJob) -> None:
    """An import that goes on has to read the rows as it did before, or it would skip the wrong ones."""
    rules = [list(job.project.scales().items()), job.project.allow_ties, job.mapping]
    digest = hashlib.sha256(json.dumps(rules, sort_keys=True).encode()).hexdigest()
    if job.rows_done and job.rules != digest:
        raise RulesChanged(
            "The import was interrupted, and the project's rubric changed meanwhile, so the rest would be read by "
            "other rules. Import the file again: tasks that are in already are recognised."
        )
    if not _owned(job).update(rules=digest):
        raise _Ended


@transaction.atomic
def _begin(job: ImportJob, now: datetime) -> Import:
    row = Import.objects.create(
        project=job.project,
        by=job.requested_by,
        made_at=now,
        file_name=job.file_name,
        file_hash=job.file_hash,
        file_bytes=job.file_bytes,
    )
    if not _owned(job).update(import_row=row):
        raise _Ended
    job.import_row = row
    return row


def _result_so_far(job: ImportJob) -> ImportResult:
    return ImportResult(
        created=job.created, existing=job.existing, rejected_total=job.rejected, layouts=set(job.layouts)
    )


def _owned(job: ImportJob) -> QuerySet[ImportJob]:
    return ImportJob.objects.filter(pk=job.pk, attempt=job.attempt, state=State.WORKING)


class _Followed(Incoming):
    """The file as it is read, which tells the row how far it is. It raises _PutDown and _Ended."""

    def __init__(self, stream: IO[bytes], job: ImportJob) -> None:
        super().__init__(stream)
        self._job = job
        self._next_beat = time.monotonic() + BEAT_SECONDS

    def readinto(self, buffer: Any) -> int:
        if heartbeats.stopping.is_set():
            raise _PutDown
        if time.monotonic() >= self._next_beat:
            self._next_beat = time.monotonic() + BEAT_SECONDS
            if not _owned(self._job).update(heartbeat_at=database_now(), bytes_read=self.size):
                raise _Ended
        return super().readinto(buffer)


class _Progress(Journal):
    """Writes what each batch came to, in the batch's own transaction: a kill loses both or neither."""

    def __init__(self, job: ImportJob) -> None:
        self._job = job
        self.rows_done = job.rows_done

    @transaction.atomic
    def note(self, batch: Batch) -> None:
        job = self._job
        layouts = sorted({*job.layouts, *batch.layouts})
        # If the row is not ours any more, the error undoes the batch: the worker that has the job now writes it.
        noted = _owned(job).update(
            rows_done=F("rows_done") + batch.rows,
            created=F("created") + batch.created,
            existing=F("existing") + batch.existing,
            rejected=F("rejected") + len(batch.refused),
            layouts=layouts,
            heartbeat_at=database_now(),
        )
        if not noted:
            raise _Ended
        if heartbeats.stopping.is_set():
            raise _PutDown
        self._keep_errors(batch)
        if job.import_row_id:
            Import.objects.filter(pk=job.import_row_id).update(
                rejected=F("rejected") + len(batch.refused), layouts=layouts
            )
        job.layouts = layouts
        job.rejected += len(batch.refused)
        job.created += batch.created
        job.existing += batch.existing

    def _keep_errors(self, batch: Batch) -> None:
        room = max(settings.IMPORT_ERRORS_REPORTED - self._job.rejected, 0)
        ImportJobError.objects.bulk_create(
            ImportJobError(job=self._job, line=row.line, field=_storable(row.field)[:200], error=_storable(row.error))
            for row in sorted(batch.refused, key=lambda row: row.line)[:room]
        )


def _storable(text: str) -> str:
    """Returns a text of the file in a form that PostgreSQL can store."""
    return text.encode(errors="replace").decode().replace("\0", "�")


@transaction.atomic
def _end(job: ImportJob, state: State, error: str = "") -> None:
    error = without_places(error)[:10_000]
    ended = _owned(job).update(
        state=state, error=error, finished_at=database_now(), **({"bytes_read": job.file_bytes} if not error else {})
    )
    if ended:
        _record(job)


@transaction.atomic
def _finish_cancelled(job: ImportJob) -> bool:
    """Completes the Import row of a job that was cancelled; returns whether that is what happened to the job."""
    row = ImportJob.objects.filter(pk=job.pk).first()
    if row is None:
        return True
    if row.state != State.CANCELLED or row.attempt != job.attempt:
        return False
    _record(job)
    return True


def _record(job: ImportJob) -> None:
    row = ImportJob.objects.select_related("import_row__project").get(pk=job.pk)
    if row.import_row:
        record(row.import_row, _result_so_far(row), file_hash=row.file_hash, file_bytes=row.file_bytes)


# Leftovers -------------------------------------------------------------------------------------------------


def sweep(*, now: datetime) -> int:
    """Ends uploads that nobody started, and removes files and empty Import rows that nobody needs any more.

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
    return len(rest)
