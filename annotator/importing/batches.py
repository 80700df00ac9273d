"""Checked rows become tasks, responses, imported labels and annotations, a batch in a transaction."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import IO, Any

from django.conf import settings
from django.db import transaction

from annotator import audit
from annotator.db import locks
from annotator.db.statements import Statement
from annotator.importing.bulk_copy import copy_rows, next_ids
from annotator.importing.expansion_limits import Incoming
from annotator.importing.gold_rows import write_experts
from annotator.importing.imported_ratings import write_annotations, write_labels
from annotator.importing.layouts import read_tasks
from annotator.importing.rows import Placed, Rejected, TaskRow
from annotator.importing.sources import read_rows
from annotator.models import Import, Project, Response, Task, User
from annotator.pii import scans
from annotator.projects.archive import require_in_use
from annotator.refusals import Refusal
from annotator.storage import disk_space

BATCH = 500
BATCH_BYTES = 4 << 20
_json = json.JSONEncoder(ensure_ascii=False).encode
UNLABELLED_FIRST = -1
"""Priority of tasks that arrive with labels: the queue serves unlabelled ones before them."""


class TakenBack(Refusal):
    """Somebody has taken the import back while it was running; the rest of the file is not read."""

    code = "taken_back"

    def __init__(self) -> None:
        super().__init__("The import was taken back while it was running. To get its tasks, import the file again.")


@dataclass
class ImportResult:
    """How many tasks are new, how many were there, which rows were refused and why, and the layouts that were met.

    `rejected` holds the first IMPORT_ERRORS_REPORTED of `rejected_total` rows. `import_id` is of the row that the file
    left; a dry run, and a file that made no task, leave none.
    """

    created: int = 0
    existing: int = 0
    rejected: list[Rejected] = field(default_factory=list)
    rejected_total: int = 0
    layouts: set[str] = field(default_factory=set)
    import_id: int | None = field(default=None, compare=False)

    def reject(self, rows: Sequence[Rejected]) -> None:
        room = settings.IMPORT_ERRORS_REPORTED - len(self.rejected)
        self.rejected += sorted(rows, key=lambda row: row.line)[: max(room, 0)]
        self.rejected_total += len(rows)


@dataclass(frozen=True)
class _Stored:
    """A task as the database knows it."""

    pk: int
    content_hash: str
    preference: int | None


@dataclass
class _Plan:
    """What one batch asks of the database: tasks to make, and rows about tasks, each by the task's name."""

    new: dict[str, TaskRow] = field(default_factory=dict)
    known: list[tuple[str, TaskRow]] = field(default_factory=list)


def import_rows(
    project: Project,
    stream: IO[bytes],
    *,
    now: datetime,
    dry_run: bool = False,
    by: User | None = None,
    file_name: str = "",
) -> ImportResult:
    """Imports a file of any known layout and format, in constant memory, and keeps a row that says so.

    A dry run does all of it and takes it back, a batch at a time, so that nobody waits for more than a batch of it. It
    counts and refuses what a real run would, but for rows that say again what stood in an earlier batch: they are new.

    Raises:
        UnreadableFile: nothing of the file can be read.
        Archived: the project takes no tasks.
        TakenBack: somebody took it back meanwhile.
        DiskNearlyFull: there is no room for it, or for all of it; batches before that stay.
    """
    result, incoming = ImportResult(), Incoming(stream)
    if dry_run:
        _import(project, incoming, result, now=now)
        return result
    made = Import.objects.create(project=project, by=by, made_at=now, file_name=_shown_name(file_name))
    try:
        _import(project, incoming, result, now=now, made=made)
    finally:  # batches before a failure stay
        _record(made, incoming, result)
    if result.created:
        scans.scan_later()
    return result


def _shown_name(file_name: str) -> str:
    """The file's name without its folders, as it can be stored."""
    name = file_name.replace("\\", "/").rsplit("/", 1)[-1]
    return name.encode(errors="replace").decode().replace("\0", "")[:200]


def _record(made: Import, incoming: Incoming, result: ImportResult) -> None:
    """A file that made no task leaves no row: there is nothing of it to be taken back."""
    if not result.created:
        Import.objects.filter(pk=made.pk, taken_back_at=None).delete()
    else:
        Import.objects.filter(pk=made.pk).update(
            rejected=result.rejected_total,
            layouts=sorted(result.layouts),
            file_hash=incoming.digest(),
            file_bytes=incoming.size,
        )
        result.import_id = made.pk
    if not result.created and not result.existing:
        return
    counts = {"created": result.created, "existing": result.existing, "rejected": result.rejected_total}
    details = {"import": result.import_id, "layouts": sorted(result.layouts)}
    audit.record("tasks.imported", _subject(made), project=made.project, **details, **counts)


def _subject(made: Import) -> str:
    return f"file {made.file_name}" if made.file_name else "a file"


def _import(
    project: Project, incoming: Incoming, result: ImportResult, *, now: datetime, made: Import | None = None
) -> None:
    """Writes the batches for `made`; without one it takes each of them back."""
    for batch in _batches(read_tasks(read_rows(incoming), project.attribute_keys())):
        disk_space.require_room()
        refused = [row for row in batch if isinstance(row, Rejected)]
        rows = [row for row in batch if isinstance(row, TaskRow)]
        if not rows:
            result.reject(refused)
            continue
        with transaction.atomic():
            _one_import_at_a_time(project)
            require_in_use(project)  # it may have been archived since the batch before
            stored = _stored_tasks(project, rows)
            plan = _planned(rows, stored, refused)
            refused += _write(project, plan, stored, now, made.pk if made else None)
            if made is None:
                transaction.set_rollback(True)
            elif not result.created and not result.existing:
                # With the first tasks: what a killed process leaves is known by it, as it writes no `tasks.imported`.
                audit.record("import.begun", _subject(made), project=project, **{"import": made.pk})
        result.reject(refused)
        result.created += len(plan.new)
        result.existing += len(plan.known)
        result.layouts |= {row.layout for row in rows}


# In the batch's transaction: an import that is killed has counted what it left.
_COUNT = Statement("""
UPDATE annotator_import SET created = created + %(created)s, existing = existing + %(existing)s,
    first_task = least(first_task, %(first)s), last_task = greatest(last_task, %(last)s)
WHERE id = %(import)s AND taken_back_at IS NULL
""")


def _one_import_at_a_time(project: Project) -> None:
    """Two imports of one file at once would both find its tasks new."""
    locks.waiting_transaction_lock("import", project.pk)


def _batches(rows: Iterator[TaskRow | Rejected]) -> Iterator[list[TaskRow | Rejected]]:
    """Up to BATCH rows that together weigh little more than BATCH_BYTES: memory follows what is in the rows."""
    batch: list[TaskRow | Rejected] = []
    weight = 0
    for row in rows:
        batch.append(row)
        weight += row.weight() if isinstance(row, TaskRow) else 0
        if len(batch) == BATCH or weight > BATCH_BYTES:
            yield batch
            batch, weight = [], 0
    if batch:
        yield batch


def _stored_tasks(project: Project, rows: Sequence[TaskRow]) -> dict[str, _Stored]:
    """Tasks that the batch may name, by id; a row without an id also names the oldest task of its content."""
    tasks = Task.objects.filter(project=project).order_by("-pk")
    found = tasks.values_list("external_id", "content_hash", "pk", "imported_preference")
    by_id = found.filter(external_id__in={row.name for row in rows})
    by_content = found.filter(content_hash__in={row.content_hash for row in rows if not row.external_id})
    return {name: _Stored(pk, digest, preference) for name, digest, pk, preference in [*by_content, *by_id]}


def _planned(rows: Sequence[TaskRow], stored: Mapping[str, _Stored], refused: list[Rejected]) -> _Plan:
    """Sorts the rows into new and known; a known id with other content is refused."""
    plan = _Plan()
    contents = {name: task.content_hash for name, task in stored.items()}
    names = {digest: name for name, digest in contents.items()}
    for row in rows:
        name = row.external_id or names.get(row.content_hash, row.name)
        if name not in contents:
            plan.new[name] = row
            contents[name] = row.content_hash
            names.setdefault(row.content_hash, name)
        elif contents[name] == row.content_hash:
            plan.known.append((name, row))
        else:
            refused.append(Rejected(row.line, f"a task with the id {name!r} exists with another text"))
    return plan


def _write(
    project: Project, plan: _Plan, stored: Mapping[str, _Stored], now: datetime, made: int | None
) -> list[Rejected]:
    """Writes what is new; returns the rows that contradict what is there."""
    new = _write_tasks(project, plan, now, made)
    if made is not None:
        tasks = [each.task for each in new.values()]
        ends = {"first": min(tasks, default=None), "last": max(tasks, default=None)}
        if not _COUNT.run(created=len(plan.new), existing=len(plan.known), **ends, **{"import": made}):
            raise TakenBack
    known = _places(plan, {name: task.pk for name, task in stored.items()}, new)
    placed = [*new.values(), *known]
    refused = write_labels(placed, now=now) + write_annotations(project, placed, now=now)
    refused += [Rejected(line, error) for line, error in write_experts(placed)]
    _add_preferences({task.pk for task in stored.values() if task.preference is None}, known)
    return refused


def _write_tasks(project: Project, plan: _Plan, now: datetime, made: int | None) -> dict[str, Placed]:
    tasks = iter(next_ids(Task, len(plan.new)))
    responses = iter(next_ids(Response, sum(len(row.responses) for row in plan.new.values())))
    placed = {
        name: Placed(next(tasks), list(islice(responses, len(row.responses))), row, is_new=True)
        for name, row in plan.new.items()
    }
    copy_rows(Task, _TASK_COLUMNS, (_task_record(project, name, each, now, made) for name, each in placed.items()))
    copy_rows(Response, _RESPONSE_COLUMNS, (record for each in placed.values() for record in _response_records(each)))
    return placed


_TASK_COLUMNS = (
    "id",
    "project_id",
    "external_id",
    "conversation",
    "metadata",
    "priority",
    "state",
    "slots_wanted",
    "open_slots",
    "content_hash",
    "prompt_hash",
    "imported_preference",
    "language",
    "from_import_id",
    "created_at",
)
_RESPONSE_COLUMNS = ("id", "task_id", "position", "external_id", "text", "model", "metadata")


def _task_record(project: Project, name: str, placed: Placed, now: datetime, made: int | None) -> Sequence[Any]:
    row = placed.row
    slots = max(project.base_annotators, min(row.raters(), project.max_annotators))
    labelled = any(response.label for response in row.responses)
    return (
        placed.task,
        project.pk,
        name,
        _json(row.messages),
        _json(row.metadata),
        UNLABELLED_FIRST if labelled and not row.priority else row.priority,
        (Task.State.GOLD if row.gold else Task.State.OPEN).value,
        slots,
        slots,
        row.content_hash,
        row.prompt_hash,
        row.preference,
        row.language,
        made,
        now,
    )


def _response_records(placed: Placed) -> Iterator[Sequence[Any]]:
    for position, (pk, response) in enumerate(zip(placed.responses, placed.row.responses, strict=True)):
        metadata = _json(response.metadata)
        yield pk, placed.task, position, response.external_id, response.text, response.model, metadata


def _places(plan: _Plan, stored: Mapping[str, int], new: Mapping[str, Placed]) -> list[Placed]:
    """Where the rows about known tasks stand; a task may have become known in this very batch."""
    tasks = {name: stored[name] for name, _ in plan.known if name in stored}
    responses: dict[int, list[int]] = {}
    given = {tasks[name] for name, row in plan.known if name in tasks and row.has_ratings()}
    found = Response.objects.filter(task__in=given).order_by("task", "position").values_list("task", "pk")
    for task, response in found if given else []:
        responses.setdefault(task, []).append(response)
    return [
        Placed(tasks[name], responses.get(tasks[name], []), row)
        if name in tasks
        else Placed(new[name].task, new[name].responses, row)
        for name, row in plan.known
    ]


def _add_preferences(without: set[int], known: Sequence[Placed]) -> None:
    """A preference file about tasks that are already here adds what it knows."""
    news = {each.task: each.row.preference for each in known if each.row.preference is not None}
    changed = [Task(pk=pk, imported_preference=preference) for pk, preference in news.items() if pk in without]
    Task.objects.bulk_update(changed, ["imported_preference"])
