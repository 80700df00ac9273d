"""Reads an assignment with its task and project in one statement, locked or not: every request of an annotator does.

The columns that rating never needs stay behind.
"""

from django.http import Http404

from annotator.infrastructure.db.statements import Columns, Row, Statement
from annotator.models import Assignment, Project, Task, User

NEVER_ASKED_FOR = (
    "metadata",
    "content_hash",
    "prompt_hash",
    "imported_preference",
    "created_at",
    "pii_scanned_at",
    "redacted_at",
)
"""Columns of a task that rating it never needs; they are not read on the hot path."""

_ASSIGNMENT = Columns(Assignment, "s")
_TASK = Columns(Task, "t", ("conversation", *NEVER_ASKED_FOR))
_PROJECT = Columns(Project, "p", ("description", "created_at", "training_config", "validation_share"))
_WITH_TASK = f"""
SELECT {_ASSIGNMENT}, {_TASK}, {_PROJECT} FROM annotator_assignment s
JOIN annotator_task t ON t.id = s.task_id JOIN annotator_project p ON p.id = t.project_id
WHERE s.id = %(assignment)s
"""
_OF_ANNOTATOR = f"""{_WITH_TASK} AND s.annotator_id = %(annotator)s AND p.deleted_at IS NULL AND EXISTS (
    SELECT FROM annotator_membership m WHERE m.user_id = %(annotator)s AND m.project_id = p.id
)"""
# Everywhere `t` before `s`: two transactions that locked task and assignment in different orders could deadlock.
_LOCKED = Statement(f"{_WITH_TASK} FOR UPDATE OF t, s")
_OWN = Statement(_OF_ANNOTATOR)
_LOCKED_OWN = Statement(f"{_OF_ANNOTATOR} FOR UPDATE OF t, s")
ONE_CLAIM_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtext('claim'), %(annotator)s::int)"
# PostgreSQL locks rows last of all, so the advisory lock comes first. The other way round this transaction would hold
# the rows while it waits for another claim of the annotator, which may want them: a deadlock.
_LOCKED_TO_CLAIM = Statement(f"""
WITH alone AS MATERIALIZED ({ONE_CLAIM_AT_A_TIME}) {_OF_ANNOTATOR} AND EXISTS (SELECT FROM alone) FOR UPDATE OF t, s
""")


class NoSuchAssignment(Assignment.DoesNotExist, Http404):
    """It is somebody else's, or was deleted meanwhile. A page or call that does not catch it answers 404."""


def locked(assignment_id: int) -> Assignment:
    """Reads the assignment with its task and locks both, the task first: every stage function locks in this order."""
    return _instance(_LOCKED.row(assignment=assignment_id))


def locked_own(annotator: User, assignment_id: int) -> Assignment:
    """Reads and locks as `locked` does, and refuses as `own` does, in one statement."""
    return _instance(_LOCKED_OWN.row(assignment=assignment_id, annotator=annotator.pk))


def locked_to_claim(annotator: User, assignment_id: int) -> Assignment:
    """Does what `one_claim_at_a_time` and then `locked_own` do, in one statement."""
    return _instance(_LOCKED_TO_CLAIM.row(assignment=assignment_id, annotator=annotator.pk))


def own(annotator: User, assignment_id: int) -> Assignment:
    """Reads an assignment of the annotator's with its task, unlocked.

    Raises:
        Assignment.DoesNotExist: it is somebody else's, its project is deleted, or the annotator is no member of it.
    """
    return _instance(_OWN.row(assignment=assignment_id, annotator=annotator.pk))


def _instance(row: Row | None) -> Assignment:
    if row is None:
        raise NoSuchAssignment
    first, second = len(_ASSIGNMENT.names), len(_ASSIGNMENT.names) + len(_TASK.names)
    assignment = _ASSIGNMENT.instance(row[:first])
    assignment.task = _TASK.instance(row[first:second])
    assignment.task.project = _PROJECT.instance(row[second:])
    return assignment
