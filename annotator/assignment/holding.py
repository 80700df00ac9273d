"""What becomes of a lease: renewed, given back, run out. And the order in which everybody sees the responses."""

import random
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from annotator import audit, consensus
from annotator.models import Assignment, Draft, Project, Response, Task, User
from annotator.refusals import Refusal
from annotator.retrying import in_transaction
from annotator.statements import Statement

RECLAIM_AT_ONCE = 20
RECOUNT_AT_ONCE = 200


class NotLeased(Refusal):
    """The assignment is not leased to this annotator any more."""

    code = "not_leased"


def locked(assignment_id: int) -> Assignment:
    """The assignment with its task, both locked, the task first: every stage function locks in this order."""
    return (
        Assignment.objects.select_related("task__project")
        .select_for_update(of=("task", "self"))
        .defer("task__conversation", "task__metadata")
        .get(pk=assignment_id)
    )


@in_transaction
def heartbeat(assignment_id: int, *, now: datetime) -> Assignment:
    """Renews the lease of somebody at work."""
    assignment = locked(assignment_id)
    if assignment.state != Assignment.State.LEASED:
        raise NotLeased(_("This task is not with you any more, so its lease cannot be renewed."))
    assignment.lease_expires_at = now + timedelta(minutes=assignment.task.project.lease_minutes)
    assignment.save(update_fields=["lease_expires_at"])
    return assignment


@in_transaction
def release(assignment_id: int) -> Assignment:
    """Gives a leased task back unrated. Twice does no harm."""
    assignment = locked(assignment_id)
    if assignment.state == Assignment.State.LEASED:
        assignment.state, assignment.slot = Assignment.State.RELEASED, None
        assignment.save(update_fields=["state", "slot"])
        Draft.objects.filter(assignment=assignment).delete()
        _count_open_slots([assignment.task_id])
    elif assignment.state != Assignment.State.RELEASED:
        raise NotLeased(_("This task is not with you any more, so it cannot be given back."))
    return assignment


# Leases that ran out ---------------------------------------------------------------------------------------

_EXPIRE = Statement("""
WITH expired AS (
    SELECT s.id FROM annotator_assignment s JOIN annotator_task t ON t.id = s.task_id
    WHERE s.state = 'leased' AND s.lease_expires_at < %(now)s
    ORDER BY s.lease_expires_at LIMIT %(most)s FOR UPDATE OF t, s SKIP LOCKED
)
UPDATE annotator_assignment s SET state = 'expired', slot = NULL FROM expired WHERE s.id = expired.id
RETURNING s.task_id
""")
_COUNT_OPEN_SLOTS = Statement("""
UPDATE annotator_task t SET open_slots = greatest(t.slots_wanted - (
    SELECT count(*) FROM annotator_assignment s WHERE s.task_id = t.id AND s.slot IS NOT NULL
), 0) WHERE t.id = ANY(%(tasks)s)
""")


def reclaim_expired(*, now: datetime) -> int:
    """Frees the slots of leases that ran out, a few at a time; tasks that another transaction holds are left."""
    tasks = [task for (task,) in _EXPIRE.rows(now=now, most=RECLAIM_AT_ONCE)]
    if tasks:
        _count_open_slots(tasks)
    return len(tasks)


def _count_open_slots(tasks: Sequence[int]) -> None:
    """Of locked tasks. Fewer may be wanted than there are slots held, so that one more free is no slot more open."""
    _COUNT_OPEN_SLOTS.run(tasks=list(tasks))


def expire_all(*, now: datetime) -> int:
    """Reclaims expired leases in short transactions until none is left; returns how many."""
    total = 0
    while True:
        found = _reclaim_some(now=now)
        total += found
        if found < RECLAIM_AT_ONCE:
            return total


_reclaim_some = in_transaction(reclaim_expired)


# Slots and orders ------------------------------------------------------------------------------------------


def free_slot(task: Task) -> int | None:
    """The lowest slot that nobody holds, or None."""
    held = set(Assignment.objects.filter(task=task, slot__isnull=False).values_list("slot", flat=True))
    return next((slot for slot in range(1, task.slots_wanted + 1) if slot not in held), None)


def recount(project: Project, *, now: datetime) -> int:
    """Recomputes slots, states and labels of every task by the project's rules of today; returns how many tasks."""
    last = counted = 0
    while True:
        tasks = _recount_some(project, after=last, now=now)
        if not tasks:
            audit.record("project.recounted", f"project {project.slug}", project=project, tasks=counted)
            return counted
        last, counted = tasks[-1].pk, counted + len(tasks)


@in_transaction
def _recount_some(project: Project, *, after: int, now: datetime) -> list[Task]:
    later = Task.objects.filter(project=project, pk__gt=after).order_by("pk").defer("conversation", "metadata")
    tasks = list(later.select_for_update()[:RECOUNT_AT_ONCE])
    consensus.settle(tasks, project=project, now=now)
    return tasks


def response_order(task: Task, annotator: User) -> list[int]:
    """The order in which this annotator sees the responses: positions, shuffled by a seed of task and annotator."""
    positions = sorted(response.position for response in task.responses.all())
    random.Random(f"{task.pk}:{annotator.pk}").shuffle(positions)
    return positions


def responses_in_order(assignment: Assignment) -> list[Response]:
    """The task's responses as this annotator sees them."""
    return in_order(assignment.task, assignment.response_order)


def in_order(task: Task, order: Sequence[int]) -> list[Response]:
    """A task's responses, by their positions."""
    by_position = {response.position: response for response in task.responses.all()}
    return [by_position[position] for position in order]
