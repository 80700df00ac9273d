"""What every stage function here refuses alike, and how it is recorded."""

from typing import Any

from annotator import audit
from annotator.models import Task
from annotator.refusals import Refusal


class Refused(Refusal):
    """What was asked for cannot be done with this task now; the message says why."""


def record(action: str, task: Task, **details: Any) -> None:
    audit.record(action, f"task {task.external_id}", project=task.project, **details)
