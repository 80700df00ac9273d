"""Takes all that an annotator did in a project out of the labels, or brings it back, in short transactions.

The Exclusion row is the truth: while it exists, `claim` refuses the annotator, and whatever of their work counts is
taken out by whichever process finds it. It is deleted once all is back. A session lock lets one process at a time work
on one exclusion.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from annotator.infrastructure import audit, jobs
from annotator.infrastructure.background import heartbeats, messages
from annotator.infrastructure.db import locks
from annotator.infrastructure.db.retries import in_transaction
from annotator.infrastructure.db.storable_text import check_written
from annotator.models import Assignment, Exclusion, Project, Task, User, Verdict
from annotator.reading.pseudonyms import pseudonym
from annotator.stages import consensus
from annotator.stages.assignment import one_claim_at_a_time
from annotator.stages.review.admission import admit_and_settle

AT_ONCE = 200
SYNC_LIMIT = 500
"""The most tasks that the caller waits for; more are left to the light worker."""


def exclude(project: Project, annotator: User, *, reason: str, by: User, now: datetime) -> Exclusion:
    """Bars the annotator at once, and takes their work out at once or through the light worker.

    A second call finishes what was interrupted and changes nothing else; during a readmission it ends that.

    Raises:
        UnstorableText, TextTooLong: the reason cannot be stored as it is.
    """
    exclusion = _bar(project, annotator, reason=reason, by=by, now=now)
    if counting(project, annotator)[SYNC_LIMIT:].exists():
        messages.send_on_commit("annotator.tasks.enforce_exclusions")
    else:
        enforce(exclusion.pk, now=now)
    return exclusion


def readmit(project: Project, annotator: User, *, now: datetime) -> Exclusion | None:
    """Brings the annotator's work back, except for what a reviewer rejected.

    Returns the exclusion if the light worker still has to end it, otherwise None. Tasks that others have filled
    meanwhile get an additional slot.

    Raises:
        Refusal: there is too much work to be waited for, and no light worker is running.
    """
    exclusion = Exclusion.objects.filter(project=project, annotator=annotator).first()
    if exclusion is None:
        return None
    much = to_return(project, annotator)[SYNC_LIMIT:].exists()
    if much:
        heartbeats.require("light")
    audit.record("annotator.readmitted", f"annotator {pseudonym(annotator.pk, project.pk)}", project=project)
    Exclusion.objects.filter(pk=exclusion.pk).update(readmitted_at=now)
    if much:
        messages.send_on_commit("annotator.tasks.enforce_exclusions")
        return exclusion
    lift(exclusion.pk, now=now)
    return None


@in_transaction
def _bar(project: Project, annotator: User, *, reason: str, by: User, now: datetime) -> Exclusion:
    check_written(reason, "reason")
    # Waits for a claim that is under way; every later one finds the row.
    one_claim_at_a_time(annotator)
    values = {"reason": reason.strip(), "by": by, "made_at": now}
    # Locked: a readmission that ends at this moment either has deleted the row already, or finds it in force again.
    rows = Exclusion.objects.select_for_update()
    exclusion, is_new = rows.get_or_create(project=project, annotator=annotator, defaults=values)
    is_renewed = _being_readmitted(exclusion.pk).update(readmitted_at=None, **values)
    if is_renewed:
        exclusion.refresh_from_db()
    if is_new or is_renewed:
        audit.record("annotator.excluded", f"annotator {pseudonym(annotator.pk, project.pk)}", project=project)
    return exclusion


def _being_readmitted(exclusion_id: int) -> QuerySet[Exclusion]:
    """Selects the exclusion, unless the annotator has been excluded again since they were readmitted."""
    return Exclusion.objects.filter(pk=exclusion_id, readmitted_at__isnull=False)


def people_of(project: Project) -> QuerySet[User]:
    """Returns the project's members and all who have worked in it: imported raters are no members."""
    work = Assignment.objects.filter(annotator=OuterRef("pk"), task__project=project)
    member = project.memberships.filter(user=OuterRef("pk"))
    # Members first: PostgreSQL may read all assignments to learn that somebody has none.
    return User.objects.filter(Exists(member) | Exists(work))


def person_named(project: Project, name: str) -> User | None:
    """Finds one of the project's people by pseudonym, else by user name.

    The pseudonym goes first, as somebody's user name may be another's pseudonym.
    """
    people = people_of(project)
    called = people.filter(pseudonyms__project=project, pseudonyms__name=name)
    return called.first() or people.filter(username=name).first()


def counting(project: Project, annotator: User) -> QuerySet[Assignment]:
    """Selects what an exclusion takes out, leases included: those are given back."""
    return Assignment.objects.filter(annotator=annotator, task__project=project, counts=True)


def to_return(project: Project, annotator: User) -> QuerySet[Assignment]:
    """Selects what a readmission brings back: all but extras, which never counted, and what a reviewer rejected."""
    latest = Verdict.objects.filter(assignment=OuterRef("pk")).order_by("-pk").values("decision")[:1]
    out = Assignment.objects.filter(annotator=annotator, task__project=project, counts=False, extra=False)
    known = out.annotate(verdict=Subquery(latest))
    return known.filter(Q(verdict__isnull=True) | ~Q(verdict=Verdict.Decision.REJECTED))


# Batch by batch --------------------------------------------------------------------------------------------


def enforce(exclusion_id: int, *, now: datetime) -> int:
    """Takes out whatever of the annotator's work still counts; returns in how many tasks."""
    with _alone(exclusion_id) as exclusion:
        if exclusion is None:
            return 0
        batches = _batches(counting(exclusion.project, exclusion.annotator))
        return sum(_take_out(exclusion, tasks, now=now) for tasks in batches)


def lift(exclusion_id: int, *, now: datetime) -> int:
    """Brings the work back and then ends the exclusion, unless it has been renewed; returns in how many tasks."""
    with _alone(exclusion_id) as exclusion:
        if exclusion is None or exclusion.readmitted_at is None:
            return 0
        batches = _batches(to_return(exclusion.project, exclusion.annotator))
        returned = sum(_give_back(exclusion, tasks, now=now) for tasks in batches)
        # Deletes nothing if somebody has excluded the annotator again while this was running.
        _being_readmitted(exclusion_id).delete()
        return returned


def enforce_all(*, now: datetime) -> int:
    """Finishes what a killed worker left, and takes out work that came in meanwhile; returns in how many tasks."""
    still_counts = Assignment.objects.filter(
        annotator=OuterRef("annotator"), task__project=OuterRef("project"), counts=True
    )
    unfinished = Exclusion.objects.filter(Exists(still_counts) | Q(readmitted_at__isnull=False))

    def finish(exclusion: Exclusion) -> int:
        return (lift if exclusion.readmitted_at else enforce)(exclusion.pk, now=now)

    return jobs.finish_left("enforce_exclusions", unfinished, finish)


@contextmanager
def _alone(exclusion_id: int) -> Iterator[Exclusion | None]:
    """Waits until no other process works on the exclusion, then yields it, or None if it is gone by then."""
    # A session lock, as the work takes many transactions. The row is read under it: what was read before may be old.
    with locks.waiting_session_lock("exclusion", exclusion_id):
        yield Exclusion.objects.select_related("project", "annotator").filter(pk=exclusion_id).first()


def _batches(assignments: QuerySet[Assignment]) -> Iterator[Sequence[int]]:
    """Yields the ids of their tasks, AT_ONCE at a time, ascending: everywhere tasks are locked in this order."""
    tasks = list(assignments.order_by("task").values_list("task", flat=True))
    for start in range(0, len(tasks), AT_ONCE):
        yield tasks[start : start + AT_ONCE]


@in_transaction
def _take_out(exclusion: Exclusion, task_ids: Sequence[int], *, now: datetime) -> int:
    tasks = Task.objects.locked(task_ids)
    assignments = counting(exclusion.project, exclusion.annotator).filter(task__in=task_ids)
    assignments.filter(state=Assignment.State.LEASED).update(state=Assignment.State.RELEASED, counts=False, slot=None)
    assignments.update(counts=False, slot=None)
    consensus.settle(tasks, project=exclusion.project, now=now)
    return len(tasks)


@in_transaction
def _give_back(exclusion: Exclusion, task_ids: Sequence[int], *, now: datetime) -> int:
    # Asked for each batch: an exclusion that is renewed meanwhile stops the readmission here.
    if not _being_readmitted(exclusion.pk).exists():
        return 0
    tasks = Task.objects.locked(task_ids)
    returned = to_return(exclusion.project, exclusion.annotator).filter(task__in=task_ids)
    # By their ids from here on: once they count, `to_return` would select them no more.
    chosen = Assignment.objects.filter(pk__in=list(returned.values_list("pk", flat=True)))
    admit_and_settle(chosen, tasks, project=exclusion.project, now=now)
    return len(tasks)
