"""The light worker's side of imports: it takes one file after the other, and goes on where another worker stopped."""

import hashlib
import json
import time
from datetime import datetime
from typing import IO, Any

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import F, QuerySet

from annotator.background import fitness, heartbeats
from annotator.background.failures import safe_text
from annotator.background.turns import by_turns
from annotator.db import locks
from annotator.db.clock import database_now
from annotator.importing.batches import record, write_batches
from annotator.importing.expansion_limits import Incoming
from annotator.importing.garbage import few_garbage_collections
from annotator.importing.jobs import fetching
from annotator.importing.jobs.files import file_of, person_of_file, remove_files
from annotator.importing.mappings import read_mapping
from annotator.importing.notes import Notes
from annotator.importing.results import Batch, ImportResult, Journal
from annotator.importing.rows import Rules
from annotator.models import Import, ImportJob, ImportJobError
from annotator.refusals import Refusal
from annotator.storage.hidden_paths import without_places

ATTEMPTS = 3
BEAT_SECONDS = 2.0
_LOST = (
    f"The worker or the database was lost in each of {ATTEMPTS} attempts. Check their logs and their memory, then "
    "import the file again: tasks that are in already are recognised."
)
State = ImportJob.State


class RulesChanged(Refusal):
    """The project reads rows by other rules than when the import began."""

    code = "rules_changed"


class Ended(Exception):
    """Somebody cancelled the job, another worker has it, or it is gone with its project."""


class PutDown(Exception):
    """The worker was asked to stop in the middle of the job."""


class FileMissing(Exception):
    """The file is not where this worker looks for it. It may be on its way; the job waits for its next attempt."""


def run_waiting() -> int:
    """Imports what waits, one file after the other; returns how many jobs have ended."""
    ended = 0
    with locks.session_lock("import jobs") as is_alone:
        while is_alone and heartbeats.takes_work() and (job := _claimed()):
            try:
                _carry_out(job)
            except FileMissing:
                break
            ended += 1
    return ended


def _claimed() -> ImportJob | None:
    """Takes the job whose turn it is. Whoever holds the lock is alone, so one that is at work has lost its worker."""
    under_way = ImportJob.objects.filter(state__in=(State.WAITING, State.WORKING))
    for job in by_turns(under_way.select_related("project", "requested_by", "import_row")):
        if job.tries >= ATTEMPTS:
            job.attempt += 1
            if under_way.filter(pk=job.pk, attempt=job.attempt - 1).update(attempt=job.attempt, state=State.WORKING):
                _end(job, State.FAILED, _LOST)
                remove_files(job)
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
        with fitness.blamed():
            if job.hub and not job.file_hash:
                _fetch(job)
            if job.state == State.UPLOADED:  # it was to be fetched only
                return
            _import(job)
    except Ended:
        if _finish_cancelled(job):  # otherwise another worker has the job, and needs the file
            remove_files(job)
        return
    except (PutDown, fitness.Unfit):
        # Not the job's fault: the next worker has as many attempts as this one had.
        owned(job).update(state=State.WAITING, tries=F("tries") - 1)
        return
    except FileMissing:
        owned(job).update(state=State.WAITING)
        raise
    except Refusal as refused:
        _end(job, State.FAILED, str(refused))
    except (OperationalError, InterfaceError):
        # The database is away: the job stays as it is, and is taken up again when it is back.
        raise
    except Exception as error:
        if not _end(job, State.FAILED, safe_text(error)):  # it was cancelled, has another worker, or has gone
            return
        _clear(job)
        raise
    else:
        _end(job, State.DONE)
    _clear(job)


def _fetch(job: ImportJob) -> None:
    sign = _Sign(job)

    def update(**fields: Any) -> bool:
        if not owned(job).update(**fields):
            raise Ended
        job.state = fields.get("state", job.state)
        return True

    fetching.fetch(job, update=update, on_piece=sign.give, now=database_now())


def _clear(job: ImportJob) -> None:
    if not job.dry_run:
        remove_files(job)


def _import(job: ImportJob) -> None:
    mapping = read_mapping(job.mapping) if job.mapping else None
    _require_same_rules(job)
    if not file_of(job).is_file():
        if job.tries < ATTEMPTS:
            raise FileMissing
        raise Refusal("The file is not where this worker looks for it. Upload it again.", code="not_startable")
    import_row = None if job.dry_run else job.import_row or _begin(job, database_now())
    # A file that goes on has the time of its beginning: ratings without a time of their own were all given at once.
    now = import_row.made_at if import_row else database_now()
    with file_of(job).open("rb") as file, few_garbage_collections():
        write_batches(
            job.project,
            _Followed(file, job),
            _result_so_far(job),
            now=now,
            mapping=mapping,
            import_row=import_row,
            person=person_of_file(job),
            journal=_Progress(job),
        )


def _require_same_rules(job: ImportJob) -> None:
    """An import that goes on has to read the rows as it did before, or it would skip the wrong ones."""
    rules = [list(job.project.scales().items()), job.project.allow_ties, job.mapping]
    if aspects := Rules.of(job.project).aspects:
        rules.append(list(aspects.items()))
    digest = hashlib.sha256(json.dumps(rules, sort_keys=True).encode()).hexdigest()
    if job.rows_done and job.rules != digest:
        raise RulesChanged(
            "The import was interrupted, and the project's rubric changed meanwhile, so the rest would be read by "
            "other rules. Import the file again: tasks that are in already are recognised."
        )
    if not owned(job).update(rules=digest):
        raise Ended


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
    if not owned(job).update(import_row=row):
        raise Ended
    job.import_row = row
    return row


def _result_so_far(job: ImportJob) -> ImportResult:
    return ImportResult(
        created=job.created,
        existing=job.existing,
        rejected_total=job.rejected,
        ratings_added=job.ratings_added,
        ratings_left_out=job.ratings_left_out,
        layouts=set(job.layouts),
        has_answers=job.has_answers,
        noted=Notes.from_json(job.notes),
    )


def owned(job: ImportJob) -> QuerySet[ImportJob]:
    return ImportJob.objects.filter(pk=job.pk, attempt=job.attempt, state=State.WORKING)


class _Sign:
    """Says on the row, every few seconds, that the worker is alive. It raises PutDown and Ended."""

    def __init__(self, job: ImportJob) -> None:
        self._job = job
        self._next_beat = time.monotonic() + BEAT_SECONDS

    def give(self, **fields: int) -> None:
        if heartbeats.stopping.is_set():
            raise PutDown
        if time.monotonic() >= self._next_beat:
            self._next_beat = time.monotonic() + BEAT_SECONDS
            if not owned(self._job).update(heartbeat_at=database_now(), **fields):
                raise Ended


class _Followed(Incoming):
    """The file as it is read, which tells the row how far it is."""

    def __init__(self, stream: IO[bytes], job: ImportJob) -> None:
        super().__init__(stream)
        self._sign = _Sign(job)

    def readinto(self, buffer: Any) -> int:
        self._sign.give(bytes_read=self.size)
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
        notes = Notes.from_json(job.notes)
        notes.add_all(batch.noted)
        # If the row is not ours any more, the error undoes the batch: the worker that has the job now writes it.
        noted = owned(job).update(
            rows_done=F("rows_done") + batch.rows,
            created=F("created") + batch.created,
            existing=F("existing") + batch.existing,
            rejected=F("rejected") + batch.rejected,
            ratings_added=F("ratings_added") + batch.ratings,
            ratings_left_out=F("ratings_left_out") + batch.left_out,
            layouts=layouts,
            notes=notes.as_json(),
            has_answers=job.has_answers or batch.has_answers,
            heartbeat_at=database_now(),
        )
        if not noted:
            raise Ended
        if heartbeats.stopping.is_set():
            raise PutDown
        self._keep_errors(batch)
        if job.import_row_id:
            Import.objects.filter(pk=job.import_row_id).update(rejected=F("rejected") + batch.rejected, layouts=layouts)
        job.layouts, job.notes = layouts, notes.as_json()
        job.has_answers |= batch.has_answers
        job.rejected += batch.rejected
        job.ratings_added += batch.ratings
        job.ratings_left_out += batch.left_out
        job.created += batch.created
        job.existing += batch.existing

    def _keep_errors(self, batch: Batch) -> None:
        kept = self._job.rejected + self._job.ratings_left_out
        room = max(settings.IMPORT_ERRORS_REPORTED - kept, 0)
        ImportJobError.objects.bulk_create(
            ImportJobError(job=self._job, line=row.line, field=_storable(row.field)[:200], error=_storable(row.error))
            for row in sorted(batch.refused, key=lambda row: row.line)[:room]
        )


def _storable(text: str) -> str:
    """Returns a text of the file in a form that PostgreSQL can store."""
    return text.encode(errors="replace").decode().replace("\0", "�")


@transaction.atomic
def _end(job: ImportJob, state: State, error: str = "") -> bool:
    """Ends the job; returns False where it is not this worker's any more."""
    error = without_places(error)[:10_000]
    ended = owned(job).update(
        state=state, error=error, finished_at=database_now(), **({"bytes_read": job.file_bytes} if not error else {})
    )
    if ended:
        _record(job)
    return bool(ended)


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
