"""Stores the checked rows of a batch as tasks, responses, imported labels and annotations."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

import orjson

from annotator.infrastructure import audit
from annotator.infrastructure.db import locks
from annotator.infrastructure.db.statements import Statement
from annotator.models import Import, Project, Response, Task
from annotator.reading.in_use import require_in_use
from annotator.stages.importing.bulk_copy import copy_rows, next_ids
from annotator.stages.importing.imported_ratings import write_annotations, write_experts, write_labels
from annotator.stages.importing.layouts.segment_rows import with_responses
from annotator.stages.importing.results import Batch, ImportResult, TakenBack, notes_of
from annotator.stages.importing.task_rows import LEFT_OUT, Placed, Rejected, TaskRow

UNLABELLED_FIRST = -1
"""Priority of tasks that arrive with labels, so that the queue serves unlabelled tasks before them."""


@dataclass(frozen=True)
class _Stored:
    """A task that is in the database already."""

    pk: int
    content_hash: str
    preference: int | None


def store(
    project: Project,
    batch: Sequence[TaskRow | Rejected],
    result: ImportResult,
    *,
    now: datetime,
    import_row: Import | None,
) -> Batch:
    """Writes the rows' tasks and answers in the caller's transaction. Raises TakenBack, and a Refusal of an archive."""
    refused = [row for row in batch if isinstance(row, Rejected)]
    rows = [row for row in batch if isinstance(row, TaskRow)]
    if not rows:
        return Batch(len(batch), 0, 0, refused, frozenset())
    # Two imports of one file at once would both find its tasks new.
    locks.waiting_transaction_lock("import", project.pk)
    require_in_use(project)  # it may have been archived since the batch before
    stored = _stored_tasks(project, rows)
    new, known = _planned(rows, stored, refused)
    made = _write_tasks(project, new, now, import_row.pk if import_row else None)
    if import_row is not None:
        tasks = [placed_row.task for placed_row in made.values()]
        ends = {"first": min(tasks, default=None), "last": max(tasks, default=None)}
        if not _COUNT.run(created=len(new), existing=len(known), **ends, **{"import": import_row.pk}):
            raise TakenBack
    places = _places(known, stored, made)
    answered = [placed_row for placed_row in (*made.values(), *places) if placed_row.row.has_answers()]
    placed, unfit = with_responses(project, answered)
    refused += unfit + write_labels(project, placed, now=now)
    not_counted, ratings = write_annotations(project, placed, now=now)
    refused += not_counted + write_experts(placed)
    refused += [Rejected(row.line, LEFT_OUT + why, of_rating=True) for row in rows for why in row.left_out]
    without = {task.pk for task in stored.values() if task.preference is None}
    given = {one.task: one.row.preference for one in places if one.row.preference is not None and one.task in without}
    preferred = [Task(pk=pk, imported_preference=preference) for pk, preference in given.items()]
    Task.objects.bulk_update(preferred, ["imported_preference"])
    if import_row is not None and not result.created and not result.existing:
        # Committed with the first tasks: if the process is killed it never writes `tasks.imported`, and this
        # entry is all that the audit log says about its tasks.
        audit.record("import.begun", subject_of(import_row), project=project, **{"import": import_row.pk})
    layouts = frozenset(row.layout for row in rows)
    noted = notes_of(new, known, {name: task.pk for name, task in stored.items()})
    return Batch(len(batch), len(new), len(known), refused, layouts, ratings, bool(answered), noted)


def subject_of(import_row: Import) -> str:
    return f"file {import_row.file_name}" if import_row.file_name else "a file"


# Runs in the batch's transaction, so the counts are right even if the process is killed after any batch. The UPDATE
# also locks the row: no withdrawal can begin, and read the range of ids, before the batch is committed.
_COUNT = Statement("""
UPDATE annotator_import SET created = created + %(created)s, existing = existing + %(existing)s,
    first_task = least(first_task, %(first)s), last_task = greatest(last_task, %(last)s)
WHERE id = %(import)s AND taken_back_at IS NULL
""")


# Ordered so that a dictionary keeps the last entry of a name: the lowest primary key, hence the oldest task.
# A project that grows while it is imported passes for tiny, and PostgreSQL would read all of it as soon as look up its
# names. So each name is looked up by itself (OFFSET), in a project of average size (the SELECT hides which one it is).
_KNOWN = Statement(
    """
SELECT t.external_id, t.content_hash, t.id, t.imported_preference FROM unnest(%(names)s::text[]) AS wanted (name)
CROSS JOIN LATERAL (
    SELECT external_id, content_hash, id, imported_preference FROM annotator_task
    WHERE project_id = (SELECT %(project)s::bigint) AND external_id = wanted.name OFFSET 0
) t ORDER BY t.id DESC
""",
    prepared=False,
)
_KNOWN_BY_CONTENT = Statement(_KNOWN.sql.replace("external_id = wanted", "content_hash = wanted"), prepared=False)


def _stored_tasks(project: Project, rows: Sequence[TaskRow]) -> dict[str, _Stored]:
    """Returns the tasks that the batch may refer to, by their ids. A row without an id may also match by content."""
    nameless = [row.content_hash for row in rows if not row.external_id or row.of_a_group]
    by_content = _KNOWN_BY_CONTENT.rows(project=project.pk, names=nameless) if nameless else []
    names = [row.name for row in rows] + [row.name_by_content for row in rows if row.of_a_group]
    by_id = _KNOWN.rows(project=project.pk, names=names)
    return {name: _Stored(pk, digest, preference) for name, digest, pk, preference in [*by_content, *by_id]}


def _planned(
    rows: Sequence[TaskRow], stored: Mapping[str, _Stored], refused: list[Rejected]
) -> tuple[dict[str, TaskRow], list[tuple[str, TaskRow]]]:
    """Returns the tasks to make, and the rows about tasks that exist, each with the task's name.

    Those that repeat a known id with other content are added to `refused`.
    """
    new: dict[str, TaskRow] = {}
    known: list[tuple[str, TaskRow]] = []
    contents = {name: task.content_hash for name, task in stored.items()}
    names = {digest: name for name, digest in contents.items()}
    for row in rows:
        name = row.external_id or names.get(row.content_hash, row.name)
        if row.of_a_group and contents.get(name, row.content_hash) != row.content_hash:
            # The id of a question stands for each pair of answers to it: the content names all pairs but the first.
            name = names.get(row.content_hash, row.name_by_content)
        if row.refers and name not in contents:
            refused.append(Rejected(row.line, f"there is no task with the id {name!r}: import its texts first", "id"))
        elif row.refers:
            known.append((name, row))
        elif name not in contents:
            new[name] = row
            # A later row of this batch may repeat the task.
            contents[name] = row.content_hash
            names.setdefault(row.content_hash, name)
        elif contents[name] == row.content_hash:
            known.append((name, row))
        else:
            refused.append(Rejected(row.line, f"a task with the id {name!r} exists with another text", "id"))
    return new, known


def _write_tasks(
    project: Project, new: Mapping[str, TaskRow], now: datetime, import_id: int | None
) -> dict[str, Placed]:
    # COPY returns no ids, and the responses have to name their tasks, so the ids are drawn beforehand.
    tasks = iter(next_ids(Task, len(new)))
    responses = iter(next_ids(Response, sum(len(row.responses) for row in new.values())))
    placed = {
        name: Placed(next(tasks), list(islice(responses, len(row.responses))), row, is_new=True)
        for name, row in new.items()
    }
    copy_rows(Task, _TASK_COLUMNS, _task_records(project, placed, now, import_id))
    copy_rows(Response, _RESPONSE_COLUMNS, _response_records(placed.values()))
    return placed


_TASK_COLUMNS = (
    *("id", "project_id", "external_id", "conversation", "metadata", "priority", "state", "slots_wanted", "open_slots"),
    *("content_hash", "prompt_hash", "imported_preference", "language", "from_import_id", "created_at"),
)
_RESPONSE_COLUMNS = ("id", "task_id", "position", "external_id", "text", "model", "metadata", "segments")


def _task_records(
    project: Project, placed: Mapping[str, Placed], now: datetime, import_id: int | None
) -> Iterator[Sequence[Any]]:
    key, base = project.pk, project.base_annotators
    is_open, is_gold = Task.State.OPEN.value, Task.State.GOLD.value
    for name, placed_row in placed.items():
        row = placed_row.row
        slots = max(base, row.raters())  # each imported rating takes one
        labelled = not row.priority and any(response.is_labelled for response in row.responses)
        yield (
            placed_row.task,
            key,
            name,
            _json(row.messages),
            _json(row.metadata) if row.metadata else "{}",
            UNLABELLED_FIRST if labelled else row.priority,
            is_gold if row.gold else is_open,
            slots,
            slots,
            row.content_hash,
            row.prompt_hash,
            row.preference,
            row.language,
            import_id,
            now,
        )


def _response_records(placed: Iterable[Placed]) -> Iterator[Sequence[Any]]:
    for placed_row in placed:
        task = placed_row.task
        for position, (pk, response) in enumerate(zip(placed_row.responses, placed_row.row.responses, strict=True)):
            metadata = _json(response.metadata) if response.metadata else "{}"
            segments = _json([list(segment) for segment in response.segments]) if response.segments else None
            yield pk, task, position, response.external_id, response.text, response.model, metadata, segments


def _json(value: Any) -> str:
    """Returns JSON for PostgreSQL. What orjson does not take, such as a number of 30 digits, json does."""
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        return json.dumps(value, ensure_ascii=False)


def _places(
    known: Sequence[tuple[str, TaskRow]], stored: Mapping[str, _Stored], made: Mapping[str, Placed]
) -> list[Placed]:
    """Finds task and responses of the rows about known tasks, some of which this very batch may have made."""
    tasks = {name: stored[name].pk for name, _ in known if name in stored}
    responses: dict[int, list[int]] = {}
    # Rows without ratings, as when a file is imported again, need none of the responses.
    rated = {tasks[name] for name, row in known if name in tasks and row.has_ratings()}
    rows = Response.objects.filter(task__in=rated).order_by("task", "position").values_list("task", "pk")
    for task, response in rows if rated else []:
        responses.setdefault(task, []).append(response)
    return [
        Placed(tasks[name], responses.get(tasks[name], []), row)
        if name in tasks
        else Placed(made[name].task, made[name].responses, row)
        for name, row in known
    ]
