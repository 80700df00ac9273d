"""Takes all that an annotator did in a project out of the labels, and back, in short transactions.

The Exclusion row is the truth: from it on `claim` refuses, and whatever of theirs counts is taken out, by whoever finds
it. It goes once all has come back. A session lock keeps one at work on one annotator.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from annotator import audit, consensus
from annotator.assignment import one_claim_at_a_time
from annotator.background import failures, heartbeats, messages
from annotator.db import locks
from annotator.db.retries import in_transaction
from annotator.db.storable_text import check_written
from annotator.models import Assignment, Exclusion, Project, Task, User, Verdict
from annotator.projects.pseudonyms import pseudonym
from annotator.review.admission import admit_and_settle

AT_ONCE = 200
AT_THE_DOOR = 500
"""Tasks that the caller waits for; the light worker does more than that."""


def exclude(project: Project, annotator: User, *, reason: str, by: User, now: datetime) -> Exclusion:
    """Bars the annotator at once and takes their work out, at once or by the light worker.

    Called again, it finishes what was cut off, and changes nothing else; during a readmission it ends that.
    """
    exclusion = _bar(project, annotator, reason=reason, by=by, now=now)
    if counting(project, annotator)[AT_THE_DOOR:].exists():
        _in_the_background("enforce_exclusion", exclusion)
    else:
        enforce(exclusion.pk, now=now)
    return exclusion


def readmit(project: Project, annotator: User, *, now: datetime) -> Exclusion | None:
    """Brings their work back but for what a reviewer rejected; the exclusion that goes on until all is back, or None.

    Tasks that others have filled meanwhile get a slot more for it.

    Raises:
        workers.NoWorker: there is too much of it to be waited for, and no light worker listens.
    """
    exclusion = Exclusion.objects.filter(project=project, annotator=annotator).first()
    if exclusion is None:
        return None
    much = to_return(project, annotator)[AT_THE_DOOR:].exists()
    if much:
        heartbeats.require("light")
    audit.record("annotator.readmitted", f"annotator {pseudonym(annotator.pk, project.pk)}", project=project)
    Exclusion.objects.filter(pk=exclusion.pk).update(readmitted_at=now)
    if much:
        _in_the_background("lift_exclusion", exclusion)
        return exclusion
    lift(exclusion.pk, now=now)
    return None


@in_transaction
def _bar(project: Project, annotator: User, *, reason: str, by: User, now: datetime) -> Exclusion:
    check_written(reason, "reason")
    # A claim under way is waited for, and every later one finds the row.
    one_claim_at_a_time(annotator)
    made = {"reason": reason.strip(), "by": by, "made_at": now}
    # Locked: a readmission that ends just now has deleted the row before, or finds it excluded again.
    rows = Exclusion.objects.select_for_update()
    exclusion, is_new = rows.get_or_create(project=project, annotator=annotator, defaults=made)
    is_anew = _being_readmitted(exclusion.pk).update(readmitted_at=None, **made)
    if is_anew:
        exclusion.refresh_from_db()
    if is_new or is_anew:
        audit.record("annotator.excluded", f"annotator {pseudonym(annotator.pk, project.pk)}", project=project)
    return exclusion


def _being_readmitted(exclusion_id: int) -> QuerySet[Exclusion]:
    """The exclusion, unless the annotator has been excluded again since they were readmitted."""
    return Exclusion.objects.filter(pk=exclusion_id, readmitted_at__isnull=False)


def _in_the_background(task: str, exclusion: Exclusion) -> None:
    messages.send_on_commit(f"annotator.tasks.{task}", [exclusion.pk])


def people_of(project: Project) -> QuerySet[User]:
    """Members, and whoever has worked here: imported raters are no members."""
    work = Assignment.objects.filter(annotator=OuterRef("pk"), task__project=project)
    member = project.memberships.filter(user=OuterRef("pk"))
    return User.objects.filter(Exists(work) | Exists(member))


def person_named(project: Project, name: str) -> User | None:
    """One of its people by pseudonym, else by user name, as that may be somebody else's pseudonym."""
    people = people_of(project)
    called = people.filter(pseudonyms__project=project, pseudonyms__name=name)
    return called.first() or people.filter(username=name).first()


def counting(project: Project, annotator: User) -> QuerySet[Assignment]:
    """What an exclusion takes out: leases too, which are given back."""
    return Assignment.objects.filter(annotator=annotator, task__project=project, counts=True)


def to_return(project: Project, annotator: User) -> QuerySet[Assignment]:
    """What a readmission brings back: all but what a reviewer has rejected, and extras, which never counted."""
    latest = Verdict.objects.filter(assignment=OuterRef("pk")).order_by("-pk").values("decision")[:1]
    out = Assignment.objects.filter(annotator=annotator, task__project=project, counts=False, extra=False)
    known = out.annotate(verdict=Subquery(latest))
    return known.filter(Q(verdict__isnull=True) | ~Q(verdict=Verdict.Decision.REJECTED))


# Batch by batch --------------------------------------------------------------------------------------------


def enforce(exclusion_id: int, *, now: datetime) -> int:
    """Takes out whatever of the annotator's still counts; returns in how many tasks."""
    with _alone(exclusion_id) as exclusion:
        if exclusion is None:
            return 0
        batches = _batches(counting(exclusion.project, exclusion.annotator))
        return sum(_take_out(exclusion, tasks, now=now) for tasks in batches)


def lift(exclusion_id: int, *, now: datetime) -> int:
    """Brings everything back, then ends the exclusion, unless they were excluded again; returns in how many tasks."""
    with _alone(exclusion_id) as exclusion:
        if exclusion is None or exclusion.readmitted_at is None:
            return 0
        batches = _batches(to_return(exclusion.project, exclusion.annotator))
        returned = sum(_give_back(exclusion, tasks, now=now) for tasks in batches)
        _being_readmitted(exclusion_id).delete()
        return returned


def enforce_all(*, now: datetime) -> int:
    """Finishes what a killed worker left, and takes out what came in beside; returns in how many tasks."""
    theirs = Assignment.objects.filter(annotator=OuterRef("annotator"), task__project=OuterRef("project"), counts=True)
    unfinished = Exclusion.objects.filter(Exists(theirs) | Q(readmitted_at__isnull=False))

    def finish(project: Project) -> int:
        return sum(
            lift(assignment.pk, now=now) if assignment.readmitted_at else enforce(assignment.pk, now=now)
            for assignment in unfinished.filter(project=project)
        )

    projects = Project.objects.filter(pk__in=unfinished.values("project"))
    return failures.each_project("enforce_exclusions", projects, finish)


@contextmanager
def _alone(exclusion_id: int) -> Iterator[Exclusion | None]:
    """The exclusion, if there still is one once nobody else is at work on it."""
    with locks.waiting_session_lock("exclusion", exclusion_id):
        yield Exclusion.objects.select_related("project", "annotator").filter(pk=exclusion_id).first()


def _batches(assignments: QuerySet[Assignment]) -> Iterator[Sequence[int]]:
    """The ids of their tasks, read once and ascending, as tasks are locked in this order everywhere."""
    tasks = list(assignments.order_by("task").values_list("task", flat=True))
    for start in range(0, len(tasks), AT_ONCE):
        yield tasks[start : start + AT_ONCE]


@in_transaction
def _take_out(exclusion: Exclusion, task_ids: Sequence[int], *, now: datetime) -> int:
    tasks = _locked(task_ids)
    theirs = counting(exclusion.project, exclusion.annotator).filter(task__in=task_ids)
    theirs.filter(state=Assignment.State.LEASED).update(state=Assignment.State.RELEASED, counts=False, slot=None)
    theirs.update(counts=False, slot=None)
    consensus.settle(tasks, project=exclusion.project, now=now)
    return len(tasks)


@in_transaction
def _give_back(exclusion: Exclusion, task_ids: Sequence[int], *, now: datetime) -> int:
    if not _being_readmitted(exclusion.pk).exists():
        return 0
    tasks = _locked(task_ids)
    returned = to_return(exclusion.project, exclusion.annotator).filter(task__in=task_ids)
    chosen = Assignment.objects.filter(pk__in=list(returned.values_list("pk", flat=True)))
    admit_and_settle(chosen, tasks, project=exclusion.project, now=now)
    return len(tasks)


def _locked(task_ids: Sequence[int]) -> list[Task]:
    tasks = Task.objects.filter(pk__in=task_ids).order_by("pk").defer("conversation", "metadata")
    return list(tasks.select_for_update())
