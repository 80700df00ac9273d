"""Renews leases, gives tasks back, reclaims leases that expired, and orders the responses for each annotator."""

import random
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.utils.translation import gettext as _

from annotator.infrastructure.background import failures
from annotator.infrastructure.db.retries import in_transaction
from annotator.infrastructure.db.statements import Columns, Row, Statement
from annotator.infrastructure.refusals import Refusal
from annotator.models import Assignment, Draft, Project, Response, Task, User
from annotator.reading.assignment_rows import NEVER_ASKED_FOR, locked

RECLAIM_AT_ONCE = 20
"""Leases that one statement reclaims: the claim that runs it answers a person who waits."""


class TooManyGivenBack(Refusal):
    """The annotator has given back too many tasks within an hour."""

    status = 429
    code = "too_many"


def expiry(project: Project, now: datetime) -> datetime:
    """Returns when a lease of the project ends that is taken or renewed now."""
    return now + timedelta(minutes=project.lease_minutes)


@in_transaction
def heartbeat(assignment_id: int, *, now: datetime) -> Assignment:
    """Renews the lease of an annotator who is still working on the task.

    Raises:
        Refusal: the lease was reclaimed, or the task is submitted, skipped or given back.
    """
    assignment = locked(assignment_id)
    if assignment.state != Assignment.State.LEASED:
        text = _(
            "You no longer hold this task, so its lease cannot be renewed. Open the project to get your next task."
        )
        raise Refusal(text, code="not_leased")
    assignment.lease_expires_at = expiry(assignment.task.project, now)
    assignment.save(update_fields=["lease_expires_at"])
    return assignment


@in_transaction
def give_back(assignment_id: int, *, now: datetime) -> Assignment:
    """Releases a task because the annotator asks for it, up to RELEASES_AN_HOUR times an hour.

    Raises:
        TooManyReleases: they have given back too many. Who claims and gives back task after task only reads them.
        Refusal: the task is not leased to them any more.
    """
    assignment = locked(assignment_id)
    if passed_lately(assignment, state=Assignment.State.RELEASED, now=now) >= settings.RELEASES_AN_HOUR:
        text = _("You have given back %(number)s tasks in the last hour. Rate this one or skip it.")
        raise TooManyGivenBack(text % {"number": settings.RELEASES_AN_HOUR})
    return release(assignment_id)


def passed_lately(assignment: Assignment, *, state: str, now: datetime) -> int:
    """Counts the project's other tasks that the annotator leased within an hour and that are now in this state."""
    others = Assignment.objects.filter(annotator=assignment.annotator_id, state=state).exclude(pk=assignment.pk)
    lately = others.filter(leased_at__gt=now - timedelta(hours=1))
    return lately.filter(task__project=assignment.task.project_id).count()


@in_transaction
def release(assignment_id: int) -> Assignment:
    """Gives a leased task back unrated. Doing so twice is harmless.

    Raises:
        Refusal: the assignment is neither leased nor released.
    """
    assignment = locked(assignment_id)
    if assignment.state == Assignment.State.LEASED:
        assignment.state, assignment.slot = Assignment.State.RELEASED, None
        assignment.save(update_fields=["state", "slot"])
        Draft.objects.filter(assignment=assignment).delete()
        _COUNT_OPEN_SLOTS.run(tasks=[assignment.task_id])
    elif assignment.state != Assignment.State.RELEASED:
        text = _("You no longer hold this task, so it cannot be given back. Open the project to get your next task.")
        raise Refusal(text, code="not_leased")
    return assignment


# Leases that ran out ---------------------------------------------------------------------------------------

# SKIP LOCKED: whoever submits at this moment holds the rows, and keeps the slot. Nor do two claims wait for each other.
_EXPIRE_WHERE = """
WITH expired AS (
    SELECT s.id FROM annotator_assignment s JOIN annotator_task t ON t.id = s.task_id
    WHERE s.state = 'leased' AND s.lease_expires_at < %(now)s{more}
    ORDER BY s.lease_expires_at LIMIT %(most)s FOR NO KEY UPDATE OF t, s SKIP LOCKED
)
UPDATE annotator_assignment s SET state = 'expired', slot = NULL FROM expired WHERE s.id = expired.id
RETURNING s.task_id
"""
_EXPIRE = Statement(_EXPIRE_WHERE.format(more=""))
_EXPIRE_IN_PROJECT = Statement(_EXPIRE_WHERE.format(more=" AND t.project_id = %(project)s"), prepared=False)
# Of locked tasks, or a claim that commits meanwhile would not be counted. A task may want fewer raters than hold slots
# after its number was lowered: then a freed slot opens nothing, and the difference must not fall below 0.
_COUNT_OPEN_SLOTS = Statement(
    """
    UPDATE annotator_task t SET open_slots = greatest(t.slots_wanted - (
        SELECT count(*) FROM annotator_assignment s WHERE s.task_id = t.id AND s.slot IS NOT NULL
    ), 0) WHERE t.id = ANY(%(tasks)s)
    """,
    prepared=False,
)


def reclaim_expired(*, now: datetime) -> int:
    """Frees the slots of up to RECLAIM_AT_ONCE expired leases and returns how many; locked tasks are passed over."""
    return freed(_EXPIRE.rows(now=now, most=RECLAIM_AT_ONCE))


def freed(rows: Sequence[Row]) -> int:
    """Counts again the open slots of the tasks of which a lease has ended, a row for each; returns how many."""
    if rows:
        _COUNT_OPEN_SLOTS.run(tasks=[task for (task,) in rows])
    return len(rows)


def expire_all(*, now: datetime) -> int:
    """Reclaims expired leases in short transactions until none is left; returns how many."""
    expired = Assignment.objects.leased().filter(lease_expires_at__lt=now)
    projects = Project.objects.filter(pk__in=expired.values("task__project"))

    def expire(project: Project) -> int:
        total = expired = _expire_some(project, now=now)
        while expired == RECLAIM_AT_ONCE:
            total += (expired := _expire_some(project, now=now))
        return total

    return failures.each_project("expire_leases", projects, expire)


@in_transaction
def _expire_some(project: Project, *, now: datetime) -> int:
    return freed(_EXPIRE_IN_PROJECT.rows(now=now, most=RECLAIM_AT_ONCE, project=project.pk))


# Slots and orders ------------------------------------------------------------------------------------------


def make_room(gold: Task) -> None:
    """Gives a gold task another slot if it has none left, as everybody may rate it. The task's row is locked."""
    if gold.open_slots == 0:
        gold.slots_wanted += 1
        gold.open_slots += 1
        gold.save(update_fields=["slots_wanted", "open_slots"])


def free_slot(task: Task) -> int | None:
    """Returns the lowest slot that nobody holds, or None if the task has no room. The task's row is locked.

    A free number alone is no room: after the wanted number was lowered, somebody may hold a slot above it.
    """
    if task.state == Task.State.GOLD:
        make_room(task)
    if task.open_slots == 0:
        return None
    taken = set(Assignment.objects.filter(task=task, slot__isnull=False).values_list("slot", flat=True))
    return next((slot for slot in range(1, task.slots_wanted + 1) if slot not in taken), None)


def response_order(task: Task, annotator: User) -> list[int]:
    """Returns the positions of the responses in the order in which this annotator sees them."""
    return shuffled((response.position for response in task.responses.all()), task.pk, annotator)


def shuffled(positions: Iterable[int], task_id: int, annotator: User) -> list[int]:
    # A text as the seed is hashed the same in every process and on every machine, unlike hash() of a tuple.
    order = sorted(positions)
    random.Random(f"{task_id}:{annotator.pk}").shuffle(order)
    return order


_RESPONSE = Columns(Response, "r", ("metadata",))
_RESPONSES = Statement(f"SELECT {_RESPONSE} FROM annotator_response r WHERE r.task_id = %(task)s ORDER BY r.position")


def responses_of(task: Task) -> list[Response]:
    """Returns the task's responses in the order of their positions."""
    return [_RESPONSE.instance(row) for row in _RESPONSES.rows(task=task.pk)]


_WHOLE = Columns(Task, "t", NEVER_ASKED_FOR)
WITH_RESPONSES = f"{_WHOLE}, {_RESPONSE}"
"""The columns of a task with its conversation as `t`, and of its responses as `r`: a row for each response."""


def task_with_responses(rows: Sequence[Row]) -> tuple[Task, list[Response]]:
    """Makes the instances of one task from rows of WITH_RESPONSES; a task without responses has a row of nulls."""
    width = len(_WHOLE.names)
    return _WHOLE.instance(rows[0][:width]), [_RESPONSE.instance(row[width:]) for row in rows if row[width]]


def responses_in_order(assignment: Assignment) -> list[Response]:
    """Returns the task's responses in the order in which the assignment's annotator sees them."""
    return in_order(responses_of(assignment.task), assignment.response_order)


def in_order(responses: Iterable[Response], order: Sequence[int]) -> list[Response]:
    """Returns the responses in the given order of their positions."""
    by_position = {response.position: response for response in responses}
    return [by_position[position] for position in order]
