"""Who rates what next: leases on tasks, one slot an annotator, reclaimed when they expire."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotator import consensus, gold
from annotator.models import Assignment, Draft, Project, Response, Task, User
from annotator.refusals import Refusal

TAKEN = (Assignment.State.LEASED, Assignment.State.SUBMITTED, Assignment.State.SKIPPED)
RECLAIM_AT_ONCE = 20
RECOUNT_AT_ONCE = 200

REASONS = {
    "empty": gettext_lazy("This project has no tasks yet."),
    "all_done": gettext_lazy("All tasks are done. Thank you!"),
    "you_did_all": gettext_lazy("You have rated or skipped every task that is open."),
    "leased_by_others": gettext_lazy(
        "Every remaining task is with another annotator just now. Look again in a few minutes."
    ),
    "not_qualified": gettext_lazy(
        "This project asks for a test before the first task. Take it on the qualification page."
    ),
    "paused": gettext_lazy("The manager has paused you in this project, and can let you go on."),
    "paused_for_gold": gettext_lazy(
        "You are paused in this project: your ratings of tasks that experts have rated differ too much from theirs. "
        "The manager has been told, and can let you go on."
    ),
}


class NotLeased(Refusal):
    """The assignment is not leased to this annotator any more."""

    code = "not_leased"


@dataclass(frozen=True)
class Claim:
    """A leased task, or the reason (a key of REASONS) why there is none."""

    assignment: Assignment | None
    reason: str = ""

    @property
    def explanation(self) -> str:
        return str(REASONS[self.reason]) if self.reason else ""


@transaction.atomic
def claim(project: Project, annotator: User, *, now: datetime) -> Claim:
    """Leases the annotator's own unfinished task, else the best open one that they have not had yet.

    In a project with gold tasks, one in about `gold_every` is a gold task instead.
    """
    if barred := _barred_because(project, annotator):
        return Claim(None, barred)
    expires = now + timedelta(minutes=project.lease_minutes)
    _one_claim_at_a_time(annotator)
    if own := _own_lease(project, annotator):
        own.task.project = project
        own.lease_expires_at = expires
        own.save(update_fields=["lease_expires_at"])
        return Claim(own)
    reclaim_expired(now=now)
    half_done = _half_done_task(project, annotator)
    task = half_done or _untouched_task(project, annotator)
    if not task:
        return Claim(None, why_nothing(project, annotator))
    if not half_done and gold.is_due(project):
        task = gold.next_for(project, annotator) or task
    task.project = project
    assignment = _lease(task, annotator, now=now, expires=expires)
    task.open_slots -= 1
    task.save(update_fields=["open_slots"])
    return Claim(assignment)


def _barred_because(project: Project, annotator: User) -> str:
    member = annotator.memberships.filter(project=project).first()
    if member is None:
        return ""
    member.project = project
    return member.barred_because()


def _one_claim_at_a_time(annotator: User) -> None:
    """Without this, a double click would lease two tasks: neither transaction sees the other's."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('claim'), %s)", [annotator.pk])


def _own_lease(project: Project, annotator: User) -> Assignment | None:
    """The newest task still with the annotator, expired or not: nobody has reclaimed it."""
    return (
        Assignment.objects.leased()
        .select_related("task")
        .filter(annotator=annotator, task__project=project, task__state__in=[Task.State.OPEN, Task.State.GOLD])
        .select_for_update(of=("self",))
        .order_by("-leased_at")
        .first()
    )


def _half_done_task(project: Project, annotator: User) -> Task | None:
    """One whose lease ran out with a draft in it, while there is room: who comes back goes on where they were."""
    state = Assignment.State.EXPIRED
    drafts = Draft.objects.filter(assignment__annotator=annotator, assignment__state=state)
    newest = drafts.filter(assignment__task__project=project).order_by("-saved_at").values_list("assignment__task")[:5]
    tasks = Task.objects.filter(pk__in=[task for (task,) in newest]).with_room()
    return tasks.select_for_update(skip_locked=True, of=("self",)).first() if newest else None


def _untouched_task(project: Project, annotator: User) -> Task | None:
    """The best one that this annotator has not had; else one that they once gave back."""
    released = Assignment.State.RELEASED
    return _best_task(project, annotator, (*TAKEN, released)) or _best_task(project, annotator, TAKEN)


def _best_task(project: Project, annotator: User, not_in: tuple[str, ...]) -> Task | None:
    return (
        Task.objects.filter(project=project)
        .with_room()
        .untouched_by(annotator.pk, states=not_in)
        .best_first()
        .select_for_update(skip_locked=True, of=("self",))
        .first()
    )


def _lease(task: Task, annotator: User, *, now: datetime, expires: datetime) -> Assignment:
    """Takes the lowest free slot of a locked task, on the annotator's earlier row if they let the task go before."""
    if task.state == Task.State.GOLD:
        gold.make_room(task)
    earlier = Assignment.objects.filter(task=task, annotator=annotator).first()
    assignment = earlier or Assignment(task=task, annotator=annotator, response_order=response_order(task, annotator))
    assignment.slot = free_slot(task)
    assignment.state = Assignment.State.LEASED
    assignment.leased_at, assignment.lease_expires_at = now, expires
    assignment.save()
    return assignment


def free_slot(task: Task) -> int | None:
    """The lowest slot that nobody holds, or None."""
    held = set(Assignment.objects.filter(task=task, slot__isnull=False).values_list("slot", flat=True))
    return next((slot for slot in range(1, task.slots_wanted + 1) if slot not in held), None)


def response_order(task: Task, annotator: User) -> list[int]:
    """The order in which this annotator sees the responses: positions, shuffled by a seed of task and annotator."""
    positions = list(Response.objects.filter(task=task).order_by("position").values_list("position", flat=True))
    random.Random(f"{task.pk}:{annotator.pk}").shuffle(positions)
    return positions


def reclaim_expired(*, now: datetime) -> int:
    """Frees the slots of leases that ran out, a few at a time; tasks that another transaction holds are left."""
    expired = list(
        Assignment.objects.expired_by(now)
        .select_related("task")
        .select_for_update(skip_locked=True, of=("self", "task"))
        .order_by("lease_expires_at")[:RECLAIM_AT_ONCE]
    )
    for assignment in expired:
        _free(assignment, Assignment.State.EXPIRED)
    return len(expired)


def _free(assignment: Assignment, state: str) -> None:
    """Ends a hold on a locked task without an annotation."""
    assignment.state = state
    assignment.slot = None
    assignment.save(update_fields=["state", "slot"])
    task = Task.objects.get(pk=assignment.task_id)
    task.open_slots += 1
    task.save(update_fields=["open_slots"])


def why_nothing(project: Project, annotator: User) -> str:
    """The key of the reason in REASONS."""
    tasks = Task.objects.filter(project=project).exclude(state=Task.State.GOLD)
    if not tasks.exists():
        return "empty"
    if not tasks.open().exists():
        return "all_done"
    if tasks.open().untouched_by(annotator.pk, states=TAKEN).exists():
        return "leased_by_others"
    return "you_did_all"


@transaction.atomic
def heartbeat(assignment_id: int, *, now: datetime) -> Assignment:
    """Renews the lease of somebody at work."""
    assignment = locked(assignment_id)
    if assignment.state != Assignment.State.LEASED:
        raise NotLeased(_("This task is not with you any more, so its lease cannot be renewed."))
    assignment.lease_expires_at = now + timedelta(minutes=assignment.task.project.lease_minutes)
    assignment.save(update_fields=["lease_expires_at"])
    return assignment


@transaction.atomic
def release(assignment_id: int) -> Assignment:
    """Gives a leased task back unrated. Twice does no harm."""
    assignment = locked(assignment_id)
    if assignment.state == Assignment.State.LEASED:
        _free(assignment, Assignment.State.RELEASED)
        Draft.objects.filter(assignment=assignment).delete()
    elif assignment.state != Assignment.State.RELEASED:
        raise NotLeased(_("This task is not with you any more, so it cannot be given back."))
    return assignment


def locked(assignment_id: int) -> Assignment:
    """The assignment with its task, both locked, the task first: every stage function locks in this order."""
    task = Task.objects.select_for_update().select_related("project").get(assignments=assignment_id)
    assignment = Assignment.objects.select_for_update().get(pk=assignment_id)
    assignment.task = task
    return assignment


def recount(project: Project, *, now: datetime) -> int:
    """Recomputes slots, states and labels of every task by the project's rules of today; returns how many tasks."""
    last = counted = 0
    while True:
        with transaction.atomic():
            later = Task.objects.filter(project=project, pk__gt=last).order_by("pk")
            tasks = list(later.select_for_update()[:RECOUNT_AT_ONCE])
            consensus.settle(tasks, project=project, now=now)
        if not tasks:
            return counted
        last, counted = tasks[-1].pk, counted + len(tasks)


def expire_all(*, now: datetime) -> int:
    """Reclaims expired leases in short transactions until none is left; returns how many."""
    total = 0
    while True:
        with transaction.atomic():
            found = reclaim_expired(now=now)
        total += found
        if found < RECLAIM_AT_ONCE:
            return total


def responses_in_order(assignment: Assignment) -> list[Response]:
    """The task's responses as this annotator sees them."""
    return in_order(assignment.task_id, assignment.response_order)


def in_order(task_id: int, order: Sequence[int]) -> list[Response]:
    """A task's responses, by their positions."""
    by_position = {response.position: response for response in Response.objects.filter(task=task_id)}
    return [by_position[position] for position in order]
