"""The light worker's side of imports: it takes one file after the other, and goes on where another worker stopped.

It fetches the files of data sets of the Hub, as the web waits for nobody. It asks as a stranger: a data set that the
operator's token alone can read would else be there for every manager.
"""

import hashlib
import json
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from annotator.infrastructure import jobs
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.storage import store
from annotator.models import Import, ImportJob, ImportJobError
from annotator.stages.importing import hub_files, samples
from annotator.stages.importing.batches import few_garbage_collections, record, shown_name, write_batches
from annotator.stages.importing.expansion_limits import FileTooLarge, Incoming
from annotator.stages.importing.jobs.uploads import (
    file_of,
    keep,
    person_of_file,
    remove_files,
    require_places,
    sample_file_of,
)
from annotator.stages.importing.mapped_rows import require_columns
from annotator.stages.importing.mappings import read_mapping
from annotator.stages.importing.results import Batch, ImportResult, Journal, Notes
from annotator.stages.importing.task_rows import ImportRules

BEAT_SECONDS = 2.0
_OF_THE_REQUEST = ("project", "requested_by", "fetch_only", "created_at", "dry_run", "mapping")
"""What the job of a further file of a data set has from the first one."""
State = ImportJob.State


class RulesChanged(Refusal):
    """The project reads rows by other rules than when the import began."""

    code = "rules_changed"


def run_waiting() -> int:
    """Imports what waits, one file after the other; returns how many jobs have ended."""
    return jobs.run_waiting(_IMPORTS)


def _carry_out(job: ImportJob) -> None:
    if job.hub and not job.file_hash:
        _fetch(job, on_piece=_Sign(job).give, now=database_now())
    if job.state == State.UPLOADED:  # it was to be fetched only
        return
    _import(job)
    with transaction.atomic():
        jobs.finish(job, bytes_read=job.file_bytes)
        _record(job)
    _clean(job)


def _fetch(job: ImportJob, *, on_piece: Callable[[], None], now: datetime) -> None:
    """Writes the job's file, and a sample of its rows. Of several files each further one gets a job of its own.

    `on_piece` is called for each piece of the file.

    Raises:
        HubRefused: The Hub does not have it, or does not answer.
        FileTooLarge, Refusal: There is more than is taken.
        MissingColumn: The mapping names a column that the file does not have.
        UnreadableFile: The file cannot be read.
    """
    first, *others = hub_files.files_of(hub_files.parsed(job.hub), token=False)
    for file in (first, *others):
        if file.size > settings.IMPORT_MAX_BYTES:
            text = _(
                "%(name)s has %(size)s bytes, and files of at most %(most)s are fetched. The operator can import it "
                "with `manage.py import_tasks`."
            )
            numbers = {"size": f"{file.size:,}", "most": f"{settings.IMPORT_MAX_BYTES:,}"}
            raise FileTooLarge(text % {"name": file.name, **numbers})
    with transaction.atomic():
        # The job has a place already.
        require_places(job.project, len(others), now=now)
        jobs.write(job, hub=str(first.name), file_name=shown_name(first.name.path))
        # Their time is that of the request, by which a client finds all it asked for.
        like = {name: getattr(job, name) for name in _OF_THE_REQUEST} | {"state": State.WAITING}
        ImportJob.objects.bulk_create(
            ImportJob(hub=str(file.name), file_name=shown_name(file.name.path), **like) for file in others
        )
    remove_files(job)  # what an earlier attempt has left

    def read(size: int) -> bytes:
        on_piece()
        return piece(size)

    with hub_files.opened(first) as piece:
        digest, size = keep(read, job)
    sample = samples.take(file_of(job))
    samples.keep(sample, sample_file_of(job))
    if job.mapping:
        require_columns(read_mapping(job.mapping), sample.columns)
    job.state = State.UPLOADED if job.fetch_only else job.state
    with jobs.beating(partial(jobs.beat, job)):
        store.put(job.directory(), require_ours=partial(jobs.require_ours, job))
    jobs.write(job, file_hash=digest, file_bytes=size, state=job.state)
    job.file_hash, job.file_bytes, job.file_name = digest, size, shown_name(first.name.path)


def _clean(job: ImportJob) -> None:
    """Removes the file where it is not needed any more, and completes the Import row of a job that was cancelled."""
    with transaction.atomic():
        if ImportJob.objects.filter(pk=job.pk, attempt=job.attempt, state=State.CANCELLED).exists():
            _record(job)
    if not ImportJob.objects.with_file(now=database_now()).filter(pk=job.pk).exists():
        remove_files(job)


def _import(job: ImportJob) -> None:
    mapping = read_mapping(job.mapping) if job.mapping else None
    # An import that goes on has to read the rows as it did before, or it would skip the wrong ones.
    rules = [list(job.project.scales().items()), job.project.allow_ties, job.mapping]
    if aspects := ImportRules.of(job.project).aspects:
        rules.append(list(aspects.items()))
    digest = hashlib.sha256(json.dumps(rules, sort_keys=True).encode()).hexdigest()
    if job.rows_done and job.rules != digest:
        raise RulesChanged(
            "The import was interrupted, and the project's rubric changed meanwhile, so the rest would be read by "
            "other rules. Import the file again: tasks that are in already are recognised."
        )
    jobs.write(job, rules=digest)
    with jobs.beating(partial(jobs.beat, job)):
        store.bring(file_of(job))
    if not file_of(job).is_file():
        if job.tries < jobs.ATTEMPTS:
            raise jobs.FileMissing
        raise Refusal("The file is not where this worker looks for it. Upload it again.", code="not_startable")
    import_row = None if job.dry_run else job.import_row or _begin(job, database_now())
    # A file that goes on has the time of its beginning: ratings without a time of their own were all given at once.
    now = import_row.made_at if import_row else database_now()
    with file_of(job).open("rb") as file, few_garbage_collections():
        incoming, sign = Incoming(file), _Sign(job)
        incoming.attend = lambda: sign.give(bytes_read=incoming.size)
        write_batches(
            job.project,
            incoming,
            _result_so_far(job),
            now=now,
            mapping=mapping,
            import_row=import_row,
            person=person_of_file(job),
            journal=_Progress(job),
        )


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
    jobs.write(job, import_row=row)
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


class _Sign:
    """Says on the row, every few seconds, that the worker is alive. It raises Postponed and Ended."""

    def __init__(self, job: ImportJob) -> None:
        self._job = job
        self._next_beat = time.monotonic() + BEAT_SECONDS

    def give(self, **fields: int) -> None:
        jobs.require_go_on()
        if time.monotonic() >= self._next_beat:
            self._next_beat = time.monotonic() + BEAT_SECONDS
            jobs.write(self._job, heartbeat_at=database_now(), **fields)


class _Progress(Journal):
    """Writes what each batch came to, in the batch's own transaction: a kill loses both or neither."""

    def __init__(self, job: ImportJob) -> None:
        self._job = job
        self.rows_done = job.rows_done

    @transaction.atomic
    def note(self, batch: Batch) -> None:
        job = self._job
        notes = Notes.from_json(job.notes)
        notes.add_all(batch.noted)
        done = {
            "rows_done": job.rows_done + batch.rows,
            "created": job.created + batch.created,
            "existing": job.existing + batch.existing,
            "rejected": job.rejected + batch.rejected,
            "ratings_added": job.ratings_added + batch.ratings,
            "ratings_left_out": job.ratings_left_out + batch.left_out,
            "layouts": sorted({*job.layouts, *batch.layouts}),
            "notes": notes.as_json(),
            "has_answers": job.has_answers or batch.has_answers,
        }
        # If the row is not ours any more, the error undoes the batch: the worker that has the job now writes it.
        jobs.write(job, heartbeat_at=database_now(), **done)
        jobs.require_go_on()
        kept = job.rejected + job.ratings_left_out
        room = max(settings.IMPORT_ERRORS_REPORTED - kept, 0)
        ImportJobError.objects.bulk_create(
            ImportJobError(job=job, line=row.line, field=_storable(row.field)[:200], error=_storable(row.error))
            for row in sorted(batch.refused, key=lambda row: row.line)[:room]
        )
        if job.import_row_id:
            rows = Import.objects.filter(pk=job.import_row_id)
            rows.update(rejected=F("rejected") + batch.rejected, layouts=done["layouts"])
        for name, value in done.items():
            setattr(job, name, value)


def _storable(text: str) -> str:
    """Returns a text of the file in a form that PostgreSQL can store."""
    return text.encode(errors="replace").decode().replace("\0", "�")


def _record(job: ImportJob) -> None:
    row = ImportJob.objects.select_related("import_row__project").get(pk=job.pk)
    if row.import_row:
        record(row.import_row, _result_so_far(row), file_hash=row.file_hash, file_bytes=row.file_bytes)


_IMPORTS = jobs.JobKind(
    "import jobs",
    jobs=lambda: ImportJob.objects.select_related("project", "requested_by", "import_row"),
    work=_carry_out,
    lost=f"{jobs.LOST}, then import the file again: tasks that are in already are recognised.",
    clean=_clean,
    failed=_record,
)
