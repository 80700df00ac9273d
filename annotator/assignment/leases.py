"""What becomes of a lease: renewed, given back, run out. And the order in which everybody sees the responses."""

import random
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.utils.translation import gettext as _

from annotator.background import failures
from annotator.db.retries import in_transaction
from annotator.db.statements import Columns, Row, Statement
from annotator.models import Assignment, Draft, Project, Response, Task, User
from annotator.refusals import Refusal

RECLAIM_AT_ONCE = 20


class NotLeased(Refusal):
    """The assignment is not leased to this annotator any more."""

    code = "not_leased"


class TooManyReleases(Refusal):
    """The annotator has given back too many tasks within an hour."""

    status = 429
    code = "too_many"


NEVER_ASKED_FOR = (
    "metadata",
    "content_hash",
    "prompt_hash",
    "imported_preference",
    "created_at",
    "pii_scanned_at",
    "redacted_at",
)
"""Of a task, by those who rate it."""

_ASSIGNMENT = Columns(Assignment, "s")
_TASK = Columns(Task, "t", ("conversation", *NEVER_ASKED_FOR))
_PROJECT = Columns(Project, "p", ("description", "created_at", "training_config", "validation_share"))
_HELD = f"""
SELECT {_ASSIGNMENT}, {_TASK}, {_PROJECT} FROM annotator_assignment s
JOIN annotator_task t ON t.id = s.task_id JOIN annotator_project p ON p.id = t.project_id
WHERE s.id = %(assignment)s
"""
_HELD_BY = f"""{_HELD} AND s.annotator_id = %(annotator)s AND p.deleted_at IS NULL AND EXISTS (
    SELECT FROM annotator_membership m WHERE m.user_id = %(annotator)s AND m.project_id = p.id
)"""
_LOCKED = Statement(f"{_HELD} FOR UPDATE OF t, s")
_OWN = Statement(_HELD_BY)
_LOCKED_OWN = Statement(f"{_HELD_BY} FOR UPDATE OF t, s")
ONE_CLAIM_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtext('claim'), %(annotator)s::int)"
# The rows are locked last of all, so never while somebody who claims, and may want them, is waited for.
_LOCKED_TO_CLAIM = Statement(f"""
WITH alone AS MATERIALIZED ({ONE_CLAIM_AT_A_TIME}) {_HELD_BY} AND EXISTS (SELECT FROM alone) FOR UPDATE OF t, s
""")


def locked(assignment_id: int) -> Assignment:
    """The assignment with its task, both locked, the task first: every stage function locks in this order."""
    return _held(_LOCKED.row(assignment=assignment_id))


def locked_own(annotator: User, assignment_id: int) -> Assignment:
    """`own` and `locked` in one."""
    return _held(_LOCKED_OWN.row(assignment=assignment_id, annotator=annotator.pk))


def locked_to_claim(annotator: User, assignment_id: int) -> Assignment:
    """`one_claim_at_a_time` and `locked_own` in one."""
    return _held(_LOCKED_TO_CLAIM.row(assignment=assignment_id, annotator=annotator.pk))


def own(annotator: User, assignment_id: int) -> Assignment:
    """An assignment of the annotator's with its task, in a project of theirs that nobody has deleted."""
    return _held(_OWN.row(assignment=assignment_id, annotator=annotator.pk))


def _held(row: Row | None) -> Assignment:
    if row is None:
        raise Assignment.DoesNotExist
    first, second = len(_ASSIGNMENT.names), len(_ASSIGNMENT.names) + len(_TASK.names)
    assignment = _ASSIGNMENT.instance(row[:first])
    assignment.task = _TASK.instance(row[first:second])
    assignment.task.project = _PROJECT.instance(row[second:])
    return assignment


@in_transaction
def heartbeat(assignment_id: int, *, now: datetime) -> Assignment:
    """Renews the lease of somebody at work."""
    assignment = locked(assignment_id)
    if assignment.state != Assignment.State.LEASED:
        text = _(
            "You no longer hold this task, so its lease cannot be renewed. Open the project to get your next task."
        )
        raise NotLeased(text)
    assignment.lease_expires_at = now + timedelta(minutes=assignment.task.project.lease_minutes)
    assignment.save(update_fields=["lease_expires_at"])
    return assignment


@in_transaction
def give_back(assignment_id: int, *, now: datetime) -> Assignment:
    """`release` at the annotator's own wish, which they may have so often within an hour.

    Raises:
        TooManyReleases: who claims and gives back one task after the other only reads them.
    """
    assignment = locked(assignment_id)
    if passed_lately(assignment, state=Assignment.State.RELEASED, now=now) >= settings.RELEASES_AN_HOUR:
        text = _("You have given back %(number)s tasks in the last hour. Rate this one or skip it.")
        raise TooManyReleases(text % {"number": settings.RELEASES_AN_HOUR})
    return release(assignment_id)


def passed_lately(assignment: Assignment, *, state: str, now: datetime) -> int:
    """How many other tasks of the project its annotator has been leased within an hour and has let go in this way."""
    others = Assignment.objects.filter(annotator=assignment.annotator_id, state=state).exclude(pk=assignment.pk)
    lately = others.filter(leased_at__gt=now - timedelta(hours=1))
    return lately.filter(task__project=assignment.task.project_id).count()


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
        text = _("You no longer hold this task, so it cannot be given back. Open the project to get your next task.")
        raise NotLeased(text)
    return assignment


# Leases that ran out ---------------------------------------------------------------------------------------

_EXPIRE_WHERE = """
WITH expired AS (
    SELECT s.id FROM annotator_assignment s JOIN annotator_task t ON t.id = s.task_id
    WHERE s.state = 'leased' AND s.lease_expires_at < %(now)s{more}
    ORDER BY s.lease_expires_at LIMIT %(most)s FOR UPDATE OF t, s SKIP LOCKED
)
UPDATE annotator_assignment s SET state = 'expired', slot = NULL FROM expired WHERE s.id = expired.id
RETURNING s.task_id
"""
_EXPIRE = Statement(_EXPIRE_WHERE.format(more=""))
_EXPIRE_IN_PROJECT = Statement(_EXPIRE_WHERE.format(more=" AND t.project_id = %(project)s"), prepared=False)
_COUNT_OPEN_SLOTS = Statement(
    """
    UPDATE annotator_task t SET open_slots = greatest(t.slots_wanted - (
        SELECT count(*) FROM annotator_assignment s WHERE s.task_id = t.id AND s.slot IS NOT NULL
    ), 0) WHERE t.id = ANY(%(tasks)s)
    """,
    prepared=False,
)


def reclaim_expired(*, now: datetime) -> int:
    """Frees the slots of leases that ran out, a few at a time; tasks that another transaction holds are left."""
    return _freed(_EXPIRE.rows(now=now, most=RECLAIM_AT_ONCE))


def _freed(rows: Sequence[Row]) -> int:
    if rows:
        _count_open_slots([task for (task,) in rows])
    return len(rows)


def _count_open_slots(tasks: Sequence[int]) -> None:
    """Counts the open slots of locked tasks anew.

    A task may want fewer raters than hold slots, so that a freed slot need not open.
    """
    _COUNT_OPEN_SLOTS.run(tasks=list(tasks))


def expire_all(*, now: datetime) -> int:
    """Reclaims expired leases in short transactions until none is left; returns how many."""
    expired = Assignment.objects.leased().filter(lease_expires_at__lt=now)
    projects = Project.objects.filter(pk__in=expired.values("task__project"))
    return failures.each_project("expire_leases", projects, partial(_expire_in, now=now))


def _expire_in(project: Project, *, now: datetime) -> int:
    total = 0
    while True:
        expired = _expire_some(project, now=now)
        total += expired
        if expired < RECLAIM_AT_ONCE:
            return total


@in_transaction
def _expire_some(project: Project, *, now: datetime) -> int:
    return _freed(_EXPIRE_IN_PROJECT.rows(now=now, most=RECLAIM_AT_ONCE, project=project.pk))


# Slots and orders ------------------------------------------------------------------------------------------


def free_slot(task: Task) -> int | None:
    """The lowest slot that nobody holds, or None where the task has no room.

    Numbers above those that are wanted may be held since more were wanted: a free number alone is no room.
    """
    if task.open_slots == 0:
        return None
    held = set(Assignment.objects.filter(task=task, slot__isnull=False).values_list("slot", flat=True))
    return next((slot for slot in range(1, task.slots_wanted + 1) if slot not in held), None)


def response_order(task: Task, annotator: User) -> list[int]:
    """The order in which this annotator sees the responses: positions, shuffled by a seed of task and annotator."""
    return shuffled((response.position for response in task.responses.all()), task, annotator)


def shuffled(positions: Iterable[int], task: Task, annotator: User) -> list[int]:
    order = sorted(positions)
    random.Random(f"{task.pk}:{annotator.pk}").shuffle(order)
    return order


_RESPONSE = Columns(Response, "r", ("metadata",))
_RESPONSES = Statement(f"SELECT {_RESPONSE} FROM annotator_response r WHERE r.task_id = %(task)s ORDER BY r.position")


def responses_of(task: Task) -> list[Response]:
    """The task's responses, in the order of their positions."""
    return [_RESPONSE.instance(row) for row in _RESPONSES.rows(task=task.pk)]


_WHOLE = Columns(Task, "t", NEVER_ASKED_FOR)
_WITH_RESPONSES = Statement(f"""
SELECT {_WHOLE}, {_RESPONSE} FROM annotator_task t LEFT JOIN annotator_response r ON r.task_id = t.id
WHERE t.id = %(task)s ORDER BY r.position
""")


def with_responses(task_id: int) -> tuple[Task, list[Response]]:
    """A task with its conversation, and its responses by position."""
    rows, width = _WITH_RESPONSES.rows(task=task_id), len(_WHOLE.names)
    return _WHOLE.instance(rows[0][:width]), [_RESPONSE.instance(row[width:]) for row in rows if row[width]]


def responses_in_order(assignment: Assignment) -> list[Response]:
    """The task's responses as this annotator sees them."""
    return in_order(responses_of(assignment.task), assignment.response_order)


def in_order(responses: Iterable[Response], order: Sequence[int]) -> list[Response]:
    """Responses by their positions."""
    by_position = {response.position: response for response in responses}
    return [by_position[position] for position in order]
