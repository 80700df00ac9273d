"""Imports a file: its rows are read and checked one by one, and stored in batches, each in a transaction of its own."""

import gc
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import datetime
from typing import IO, TypeVar

from django.db import transaction

from annotator.infrastructure import audit
from annotator.infrastructure.db.planning import take_statistics
from annotator.infrastructure.storage import disk_space
from annotator.models import Annotation, Assignment, Import, Label, Project, Rating, Response, Task, User
from annotator.stages.importing.expansion_limits import Incoming
from annotator.stages.importing.layouts import read_tasks
from annotator.stages.importing.layouts.ratings import person_of
from annotator.stages.importing.mappings import ColumnMapping
from annotator.stages.importing.results import ImportResult, Journal
from annotator.stages.importing.sources import read_rows
from annotator.stages.importing.storing import store, subject_of
from annotator.stages.importing.task_rows import HOPELESS, ImportRules, Rejected, TaskRow
from annotator.stages.pii import scans

T = TypeVar("T")
_USUAL = gc.get_threshold()
_counting = threading.Lock()
_imports = 0
BATCH = 5000
BATCH_BYTES = 4 << 20
COUNTED_FROM = 1_000
"""New tasks after which PostgreSQL looks at the tables: until it does, the first exports read them row by row."""


def import_rows(
    project: Project,
    stream: IO[bytes],
    *,
    now: datetime,
    dry_run: bool = False,
    by: User | None = None,
    file_name: str = "",
    mapping: ColumnMapping | None = None,
    attend: Callable[[], None] = lambda: None,
) -> ImportResult:
    """Imports a file of any format in constant memory, and records it in an Import row.

    Its rows are in one of the known layouts, or `mapping` names the column for each field.

    A dry run writes every batch and rolls it back, so that nobody waits for longer than one batch takes. It counts and
    refuses what a real run would, with one exception: a row that repeats a row of an earlier batch counts as new.

    `attend` is called while the file is read. An error that it raises ends the import after the batch before.

    Raises:
        UnreadableFile: Nothing of the file can be read.
        MissingColumn: The mapping names a column that the file does not have.
        Refusal: The project is archived and accepts no tasks.
        TakenBack: Somebody took the import back while it was running.
        DiskNearlyFull: The disk has no room for the next batch; batches that were written before stay.
    """
    result, incoming = ImportResult(), Incoming(stream, attend)
    if dry_run:
        write_batches(project, incoming, result, now=now, mapping=mapping, person=person_of(file_name))
        return result
    import_row = Import.objects.create(project=project, by=by, made_at=now, file_name=shown_name(file_name))
    try:
        person = person_of(file_name)
        write_batches(project, incoming, result, now=now, mapping=mapping, import_row=import_row, person=person)
    finally:  # batches that were committed before a failure stay, and the Import row has to describe them
        record(import_row, result, file_hash=incoming.digest(), file_bytes=incoming.size)
    return result


def shown_name(file_name: str) -> str:
    """Returns the file's name without its folders, and without the characters that PostgreSQL cannot store."""
    name = file_name.replace("\\", "/").rsplit("/", 1)[-1]
    return name.encode(errors="replace").decode().replace("\0", "")[:200]


def record(import_row: Import, result: ImportResult, *, file_hash: str, file_bytes: int) -> None:
    """Completes the Import row, writes the audit entry and has new texts searched for personal information.

    A file that made no task keeps no row to be taken back.
    """
    if not result.created:
        Import.objects.filter(pk=import_row.pk, taken_back_at=None).delete()
    else:
        Import.objects.filter(pk=import_row.pk).update(
            rejected=result.rejected_total,
            layouts=sorted(result.layouts),
            file_hash=file_hash,
            file_bytes=file_bytes,
        )
        result.import_id = import_row.pk
        scans.scan_later()
    if result.created >= COUNTED_FROM:
        answers = (Label, Assignment, Annotation, Rating) if result.has_answers else ()
        take_statistics(Task, Response, *answers, added=result.created)
    if not result.created and not result.existing:
        return
    counts = {"created": result.created, "existing": result.existing, "rejected": result.rejected_total}
    counts["ratings"] = result.ratings_added
    details = {"import": result.import_id, "layouts": sorted(result.layouts)}
    audit.record("tasks.imported", subject_of(import_row), project=import_row.project, **details, **counts)


def write_batches(
    project: Project,
    incoming: Incoming,
    result: ImportResult,
    *,
    now: datetime,
    mapping: ColumnMapping | None = None,
    import_row: Import | None = None,
    person: str = "",
    journal: Journal = Journal(),  # noqa: B008  it has no state
) -> None:
    """Writes the batches under `import_row`; without one, as in a dry run, it rolls each batch back."""
    tasks = read_tasks(read_rows(incoming), ImportRules.of(project, person), mapping)
    # Python reads the next batch while PostgreSQL writes this one.
    with closing(read_ahead(_batches(tasks, done=journal.rows_done))) as batches:
        for batch in batches:
            # Before each batch, as PostgreSQL stops when it finds no room for its log.
            disk_space.require_room()
            with transaction.atomic():
                written = store(project, batch, result, now=now, import_row=import_row)
                if import_row is None:
                    transaction.set_rollback(True)
                else:
                    journal.note(written)
            if import_row is None:
                journal.note(written)
            result.reject(written.refused)
            result.created += written.created
            result.existing += written.existing
            result.ratings_added += written.ratings
            result.layouts |= written.layouts
            result.has_answers |= written.has_answers
            result.noted.add_all(written.noted)


def _batches(rows: Iterator[TaskRow | Rejected], *, done: int) -> Iterator[list[TaskRow | Rejected]]:
    """Yields up to BATCH rows that together weigh little more than BATCH_BYTES: long rows make short batches.

    The first `done` rows are passed over. Ratings of one task that follow each other stay together, so that the task is
    settled once, from all of them. The rows are hashed here, in the thread that reads ahead, as the thread that writes
    waits for them otherwise. If the first HOPELESS rows are bad, one more says that the rest of the file is not read.
    """
    batch: list[TaskRow | Rejected] = []
    number = weight = 0
    is_hopeless = True
    for row in rows:
        number += 1
        if is_hopeless and number > HOPELESS:
            batch.append(
                Rejected(row.line, f"the rest is not read: none of the first {HOPELESS:,} rows can be imported")
            )
            break
        is_hopeless = is_hopeless and isinstance(row, Rejected)
        if number <= done:
            continue
        if (len(batch) >= BATCH or weight > BATCH_BYTES) and not _goes_with(batch[-1], row):
            yield batch
            batch, weight = [], 0
        if isinstance(row, TaskRow):
            _ = row.content_hash
            weight += row.weight()
        batch.append(row)
        del row  # a large one would stay in memory while the next one is read
    if batch:
        yield batch


def _goes_with(last: TaskRow | Rejected, row: TaskRow | Rejected) -> bool:
    """Returns whether both rows refer to one task."""
    if isinstance(last, Rejected) or isinstance(row, Rejected):
        return False
    return last.refers and row.refers and last.external_id == row.external_id


def read_ahead(items: Iterator[T]) -> Generator[T]:
    """Yields the items in their order. Two are there at a time: one in use, and one that is made meanwhile.

    They are made in another thread, so making them must not use the database. An error is raised in its item's place.
    Whoever does not use them all closes the generator, which ends the thread.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="reading-ahead") as thread:
        coming = thread.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = thread.submit(next, items, None)
            yield item
            del item  # a large one would stay in memory while the next one is made


@contextmanager
def few_garbage_collections() -> Iterator[None]:
    """Looks for garbage once in a batch: rows form no cycles, and looking among them took a fifth of the time.

    The whole process does so, until the last of its imports has ended.
    """
    _count(1)
    try:
        yield
    finally:
        _count(-1)


def _count(more: int) -> None:
    global _imports
    with _counting:
        _imports += more
        gc.set_threshold(100_000 if _imports else _USUAL[0], *_USUAL[1:])
