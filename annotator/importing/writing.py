"""Checked rows become tasks, responses, imported labels and annotations, a batch in a transaction."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import IO

from django.db import connection, transaction

from annotator.importing.given import write_annotations, write_labels
from annotator.importing.layouts import Rejected, TaskRow, read_tasks
from annotator.importing.sources import read_rows
from annotator.models import Project, Response, Task

BATCH = 500
UNLABELLED_FIRST = -1
"""Priority of tasks that arrive with labels: the queue serves unlabelled ones before them."""


@dataclass
class ImportResult:
    """How many tasks are new, how many were there, and which rows were refused and why."""

    created: int = 0
    existing: int = 0
    rejected: list[Rejected] = field(default_factory=list)


@dataclass
class _Plan:
    """What one batch asks of the database."""

    new: list[tuple[Task, TaskRow]] = field(default_factory=list)
    known: list[tuple[Task, TaskRow]] = field(default_factory=list)


def import_rows(project: Project, stream: IO[bytes], *, now: datetime, dry_run: bool = False) -> ImportResult:
    """Imports a file of any known layout and format, in constant memory.

    Raises:
        UnreadableFile: the file as a whole is damaged; the batches before the damage are in.
    """
    result = ImportResult()
    seen: dict[str, str] = {}
    for batch in _batches(read_tasks(read_rows(stream), project.attribute_keys())):
        result.rejected += [row for row in batch if isinstance(row, Rejected)]
        rows = [row for row in batch if isinstance(row, TaskRow)]
        with transaction.atomic():
            _one_import_at_a_time(project)
            plan = _planned(project, rows, result, seen if dry_run else {})
            if not dry_run:
                _write(project, plan, result, now)
        result.created += len(plan.new)
        result.existing += len(plan.known)
    return result


def _one_import_at_a_time(project: Project) -> None:
    """Two imports of one file at once would both find its tasks new."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('import'), %s)", [project.pk])


def _batches(rows: Iterator[TaskRow | Rejected]) -> Iterator[list[TaskRow | Rejected]]:
    while batch := list(islice(rows, BATCH)):
        yield batch


def _planned(project: Project, rows: Sequence[TaskRow], result: ImportResult, seen: dict[str, str]) -> _Plan:
    """Sorts the rows into new and known; a known id with other content is refused.

    `seen` carries ids and hashes of earlier batches through a dry run, where the database does not.
    """
    by_id, by_content = _known_tasks(project, rows)
    plan = _Plan()
    for row in rows:
        digest = row.content_hash()
        name = row.external_id or f"content-{digest[:24]}"
        task = by_id.get(name) if row.external_id else by_content.get(digest, by_id.get(name))
        earlier = seen.get(name)
        if (task and task.content_hash != digest) or (earlier and earlier != digest):
            result.rejected.append(Rejected(row.line, f"a task with the id {name!r} exists with another text"))
        elif task:
            plan.known.append((task, row))
        elif earlier:
            plan.known.append((Task(project=project, external_id=name), row))
        else:
            task = _new_task(project, row, name, digest)
            plan.new.append((task, row))
            by_id[name] = by_content[digest] = task
        seen.setdefault(name, digest)
    return plan


def _known_tasks(project: Project, rows: Sequence[TaskRow]) -> tuple[dict[str, Task], dict[str, Task]]:
    """Tasks that the batch may name, by id and by content; locked, as their annotations may change."""
    tasks = Task.objects.filter(project=project).defer("conversation", "metadata")
    by_id = tasks.filter(external_id__in=[row.external_id for row in rows if row.external_id])
    by_content = tasks.filter(content_hash__in=[row.content_hash() for row in rows if not row.external_id])
    return {task.external_id: task for task in by_id}, {task.content_hash: task for task in by_content}


def _new_task(project: Project, row: TaskRow, external_id: str, digest: str) -> Task:
    labelled = any(response.label for response in row.responses)
    given = max(len(response.ratings) for response in row.responses)
    slots = max(project.base_annotators, min(given, project.max_annotators))
    return Task(
        project=project,
        external_id=external_id,
        conversation=row.messages,
        metadata=row.metadata,
        priority=UNLABELLED_FIRST if labelled and not row.priority else row.priority,
        slots_wanted=slots,
        open_slots=slots,
        content_hash=digest,
        prompt_hash=row.prompt_hash(),
        imported_preference=row.preference,
    )


def _write(project: Project, plan: _Plan, result: ImportResult, now: datetime) -> None:
    Task.objects.bulk_create([task for task, _ in plan.new])
    Response.objects.bulk_create(
        Response(
            task=task,
            position=position,
            external_id=response.external_id,
            text=response.text,
            model=response.model,
            metadata=response.metadata,
        )
        for task, row in plan.new
        for position, response in enumerate(row.responses)
    )
    pairs = plan.new + plan.known
    result.rejected += write_labels(pairs, now=now)
    write_annotations(project, pairs, now=now)
    _add_preferences(plan.known)


def _add_preferences(known: Sequence[tuple[Task, TaskRow]]) -> None:
    """A preference file about tasks that are already here adds what it knows."""
    news = [(task, row) for task, row in known if row.preference is not None and task.imported_preference is None]
    for task, row in news:
        task.imported_preference = row.preference
    Task.objects.bulk_update([task for task, _ in news], ["imported_preference"])
