"""The refusal that the stage functions of annotation share, and the audit entry that each of them writes."""

from typing import Any

from annotator.infrastructure import audit
from annotator.infrastructure.refusals import Refusal
from annotator.models import Task


class Refused(Refusal):
    """The task is in a state that does not allow the request; the message says why."""


def record(action: str, task: Task, **details: Any) -> None:
    """Writes an audit entry about the task, in the caller's transaction: what is rolled back is not recorded."""
    audit.record(action, _subject(task), project=task.project, **details)


def entry_about(task: Task, action: str, **details: Any) -> dict[str, Any]:
    """Returns the values of the entry that `record` writes, for a statement that holds audit.ADD_ENTRY."""
    return audit.entry(action, _subject(task), project=task.project, **details)


def _subject(task: Task) -> str:
    return f"task {task.external_id}"
