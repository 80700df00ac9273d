"""An import is taken back: the tasks that it made go, as long as nobody has rated any of them.

What it added to tasks of other imports (labels, ratings) stays. Tasks go a batch in a transaction, so that nobody waits
for a large import; a task that somebody rates meanwhile stays, with the rating.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from annotator import audit
from annotator.background import failures, heartbeats, messages
from annotator.db.retries import in_transaction
from annotator.models import (
    Annotation,
    Assignment,
    Import,
    Label,
    Origin,
    Project,
    QualificationAnswer,
    Tally,
    Task,
    User,
)
from annotator.projects.archive import require_in_use
from annotator.refusals import Refusal

BATCH = 500
AT_THE_DOOR = 2_000
"""Tasks that somebody waits for; of more, the light worker takes care."""


class AlreadyRated(Refusal):
    """Somebody has rated tasks of the import, so that it stays; the message counts them."""

    code = "already_rated"


@dataclass(frozen=True)
class Withdrawal:
    """What an import would take along: its tasks, with labels and annotations of files, and leases of people at work.

    `rated` counts the tasks that somebody has rated: none, or the import stays.
    """

    tasks: int
    rated: int
    labels: int
    imported_annotations: int
    leases: int


def tasks_of(made: Import) -> QuerySet[Task]:
    """The tasks that the import has made, found between the ids that it knows."""
    return Task.objects.filter(
        project=made.project_id, pk__range=(made.first_task or 0, made.last_task or 0), from_import=made.pk
    )


def withdrawal_preview(made: Import) -> Withdrawal:
    """Counts, and changes nothing."""
    tasks = tasks_of(made)
    assignments = Assignment.objects.filter(task__in=tasks)
    return Withdrawal(
        tasks=tasks.count(),
        rated=_rated(tasks).count(),
        labels=Label.objects.filter(response__task__in=tasks).count(),
        imported_annotations=Annotation.objects.filter(assignment__in=assignments, origin=Origin.IMPORTED).count(),
        leases=assignments.leased().count(),
    )


def take_back(made: Import, *, by: User | None, now: datetime) -> Import:
    """Takes the import back, at once or, where it is large, in the background: `all_gone_at` says when it was done.

    Raises:
        AlreadyRated: somebody has rated one of its tasks.
        Archived: the project is archived.
        workers.NoWorker: it is large, and no light worker listens.
    """
    large = tasks_of(made)[AT_THE_DOOR:].exists()
    if large:
        heartbeats.require("light")
    begun = begin(made, by=by, now=now)
    if large:
        messages.send_on_commit("annotator.tasks.finish_withdrawal", [begun.pk])
        return begun
    return finish(begun, now=now)


@in_transaction
def begin(made: Import, *, by: User | None, now: datetime) -> Import:
    """Decides that the import goes; twice does no harm. Raises AlreadyRated, Archived."""
    made = Import.objects.select_for_update(of=("self",)).select_related("project").get(pk=made.pk)
    if made.taken_back_at:
        return made
    require_in_use(made.project)
    found = withdrawal_preview(made)
    if found.rated:
        raise AlreadyRated(
            f"{found.rated:,} of the {found.tasks:,} tasks of this import have been rated, so it cannot be taken back. "
            "Retire the tasks that nobody should rate any more."
        )
    made.taken_back_at, made.taken_back_by = now, by
    made.save(update_fields=["taken_back_at", "taken_back_by"])
    audit.record("tasks.taken_back", f"import {made.pk}", project=made.project, file=made.file_name, tasks=found.tasks)
    return made


def finish(made: Import, *, now: datetime) -> Import:
    """Removes what is left of an import that is taken back. It may be stopped anywhere, and begun anew."""
    last: int | None = 0
    while last is not None:
        last = _remove_some(made, after=last)
    Import.objects.filter(pk=made.pk, all_gone_at__isnull=True).update(all_gone_at=now)
    return Import.objects.select_related("project", "by").get(pk=made.pk)


def finish_all(*, now: datetime) -> int:
    """Goes on with those that a worker was stopped in; returns how many."""

    def go_on(project: Project) -> int:
        left = list(Import.objects.being_taken_back().filter(project=project).order_by("pk"))
        for made in left:
            finish(made, now=now)
        return len(left)

    projects = Project.objects.filter(pk__in=Import.objects.being_taken_back().values("project"))
    return failures.each_project("finish_withdrawals", projects, go_on)


@in_transaction
def _remove_some(made: Import, *, after: int) -> int | None:
    """A batch of tasks behind the id; returns the id that it ended with, None where there was none."""
    # Locked first: whoever submits a rating just now is waited for, and then their task stays.
    found = list(
        tasks_of(made).filter(pk__gt=after).order_by("pk").select_for_update().values_list("pk", flat=True)[:BATCH]
    )
    if not found:
        return None
    kept = set(_rated(Task.objects.filter(pk__in=found)).values_list("pk", flat=True))
    going = [pk for pk in found if pk not in kept]
    _count_off(going, made)
    Task.objects.filter(pk__in=going).delete()
    Import.objects.filter(pk=made.pk).update(removed=F("removed") + len(going))
    return found[-1]


def _rated(tasks: QuerySet[Task]) -> QuerySet[Task]:
    """Those that a person has rated, or a reviewer settled; answers of a qualification count as ratings."""
    people = Annotation.objects.filter(assignment__task=OuterRef("pk")).exclude(origin=Origin.IMPORTED)
    answers = QualificationAnswer.objects.filter(response__task=OuterRef("pk"))
    return tasks.filter(Q(Exists(people)) | Q(Exists(answers)) | Q(adjudicated=True))


def _count_off(tasks: Sequence[int], made: Import) -> None:
    """Raters of files have rated so many tasks fewer."""
    held = Assignment.objects.submitted().filter(task__in=tasks)
    for rater, done in sorted(Counter(held.values_list("annotator", flat=True)).items()):
        Tally.objects.filter(annotator=rater, project=made.project_id).update(done=F("done") - done)
