"""Takes an import back: deletes the tasks that it made, provided that nobody has rated any of them.

Labels and ratings that it added to tasks of other imports stay. Each batch of tasks is deleted in a transaction of its
own, so that nobody waits for a large import. A task that somebody rates meanwhile stays, with the rating.
"""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from annotator.infrastructure import audit, jobs
from annotator.infrastructure.background import heartbeats, messages
from annotator.infrastructure.db.retries import in_transaction
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.web.numbers import number
from annotator.models import (
    Adjudication,
    Annotation,
    Assignment,
    ExportJob,
    Import,
    Label,
    Origin,
    QualificationAnswer,
    Release,
    Tally,
    Task,
    User,
)
from annotator.reading.in_use import require_in_use

BATCH = 500
FEW = 500
"""Assignments that are looked at one by one to learn whether a task has been rated."""
SYNC_LIMIT = 2_000
"""Most tasks that are deleted while the caller waits. The light worker deletes those of a larger import."""


@dataclass(frozen=True)
class Withdrawal:
    """What would be deleted with an import: its tasks, their imported labels and annotations, and people's leases.

    `rated` counts the tasks that somebody has rated. Unless it is 0, the import cannot be taken back.
    """

    tasks: int
    rated: int
    labels: int
    imported_annotations: int
    leases: int


def tasks_of(import_row: Import) -> QuerySet[Task]:
    """Returns the tasks that the import made and that still exist."""
    # `from_import` has no index, for which every new task would pay; the primary key finds the range of ids instead.
    return Task.objects.filter(project=import_row.project_id, pk__range=_ids(import_row), from_import=import_row.pk)


def _ids(import_row: Import) -> tuple[int, int]:
    return (import_row.first_task or 0, import_row.last_task or 0)


def withdrawal_preview(import_row: Import, *, most: int | None = None) -> Withdrawal:
    """Counts what taking the import back would delete, and changes nothing.

    With `most`, all but the tasks and leases are counted up to `most` + 1, which stands for any larger number: a page
    need not wait until hundreds of thousands are counted.
    """
    tasks = tasks_of(import_row)
    assignments = Assignment.objects.filter(task__in=tasks)
    return Withdrawal(
        tasks=tasks.count(),
        rated=0 if _is_untouched(import_row) else _number(_rated(tasks), most),
        labels=_number(Label.objects.filter(response__task__in=tasks), most),
        imported_annotations=_number(
            Annotation.objects.filter(assignment__in=assignments, origin=Origin.IMPORTED), most
        ),
        leases=assignments.leased().count(),
    )


def _number(rows: QuerySet[Any], most: int | None) -> int:
    return rows.count() if most is None else rows.order_by().values("pk")[: most + 1].count()


def _is_untouched(import_row: Import) -> bool:
    """Returns True only if nobody has rated or settled any task: at a glance, unless many tasks have been given out."""
    ids = _ids(import_row)
    given = Assignment.objects.filter(task__pk__range=ids).order_by("task", "annotator")
    first = list(given.values_list("pk", flat=True)[: FEW + 1])
    return (
        len(first) <= FEW
        and not Annotation.objects.filter(assignment__in=first).exclude(origin=Origin.IMPORTED).exists()
        and not Adjudication.objects.filter(task__pk__range=ids).exists()
        and not QualificationAnswer.objects.filter(response__task__pk__range=ids).exists()
    )


def take_back(import_row: Import, *, by: User | None, now: datetime) -> Import:
    """Takes the import back, at once or, if it is large, in the background. `all_gone_at` says when it was finished.

    Raises:
        Refusal: Somebody has rated one of its tasks.
        Refusal: The project is archived.
        Refusal: The import is large, and no light worker is listening.
    """
    large = tasks_of(import_row)[SYNC_LIMIT:].exists()
    if large:
        # Refused before the import is marked as taken back, as nobody would delete its tasks.
        heartbeats.require("light")
    begun = begin(import_row, by=by, now=now)
    if large:
        messages.send_on_commit("annotator.tasks.finish_withdrawals")
        return begun
    return finish(begun, now=now)


@in_transaction
def begin(import_row: Import, *, by: User | None, now: datetime) -> Import:
    """Marks the import as taken back. A second call changes nothing. Raises Refusal."""
    # The lock waits for the batch that a running import is writing; the import's next batch finds the row marked.
    import_row = Import.objects.select_for_update(of=("self",)).select_related("project").get(pk=import_row.pk)
    if import_row.taken_back_at:
        return import_row
    require_in_use(import_row.project)
    preview = withdrawal_preview(import_row)
    if preview.rated:
        text = _(
            "%(rated)s of the %(tasks)s tasks of this import have been rated, so it cannot be taken back. Retire the "
            "tasks that nobody should rate any more."
        )
        raise Refusal(
            text % {"rated": number(preview.rated, 0), "tasks": number(preview.tasks, 0)}, code="already_rated"
        )
    import_row.taken_back_at, import_row.taken_back_by = now, by
    import_row.save(update_fields=["taken_back_at", "taken_back_by"])
    audit.record(
        "tasks.taken_back",
        f"import {import_row.pk}",
        project=import_row.project,
        file=import_row.file_name,
        tasks=preview.tasks,
    )
    return import_row


def finish(import_row: Import, *, now: datetime) -> Import:
    """Deletes the remaining tasks of an import that is taken back. It may be stopped at any point and repeated."""
    last: int | None = 0
    while last is not None:
        last = _remove_some(import_row, after=last)
    # Conditional, so that a repeated call keeps the time of the first one.
    Import.objects.filter(pk=import_row.pk, all_gone_at__isnull=True).update(all_gone_at=now)
    return Import.objects.select_related("project", "by").get(pk=import_row.pk)


def finish_all(*, now: datetime) -> int:
    """Finishes the withdrawals during which a worker was stopped; returns how many there were."""
    left = Import.objects.being_taken_back()
    return jobs.finish_left("finish_withdrawals", left, lambda import_row: bool(finish(import_row, now=now)))


@in_transaction
def _remove_some(import_row: Import, *, after: int) -> int | None:
    """Deletes a batch of tasks with ids above `after`; returns the last id of the batch, or None if none was left."""
    # Locked before the ratings are read: a submission that is under way is waited for, and its task then stays.
    tasks = list(
        tasks_of(import_row)
        .filter(pk__gt=after)
        .order_by("pk")
        .select_for_update()
        .values_list("pk", flat=True)[:BATCH]
    )
    if not tasks:
        return None
    kept = set(_rated(Task.objects.filter(pk__in=tasks)).values_list("pk", flat=True))
    going = [pk for pk in tasks if pk not in kept]
    # The imported raters have rated so many tasks fewer.
    assignments = Assignment.objects.submitted().filter(task__in=going)
    # By id: transactions that update several tallies in different orders could wait for each other.
    for rater, done in sorted(Counter(assignments.values_list("annotator", flat=True)).items()):
        Tally.objects.filter(annotator=rater, project=import_row.project_id).update(done=F("done") - done)
    Task.objects.filter(pk__in=going).delete()
    ExportJob.objects.texts_have_gone(import_row.project_id)
    Release.objects.texts_have_gone(import_row.project_id, going)
    Import.objects.filter(pk=import_row.pk).update(removed=F("removed") + len(going))
    return tasks[-1]


def _rated(tasks: QuerySet[Task]) -> QuerySet[Task]:
    """Selects the tasks that a person has rated or a reviewer has settled. Qualification answers count as ratings."""
    people = Annotation.objects.filter(assignment__task=OuterRef("pk")).exclude(origin=Origin.IMPORTED)
    answers = QualificationAnswer.objects.filter(response__task=OuterRef("pk"))
    return tasks.filter(Q(Exists(people)) | Q(Exists(answers)) | Q(adjudicated=True))
