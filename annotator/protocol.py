"""What follows when a project's protocol numbers change: its tasks are recomputed by the light worker."""

from functools import partial

from django.db import transaction

from annotator.celery import app
from annotator.models import Project

NUMBERS = (
    "base_annotators",
    "max_annotators",
    "escalate_above",
    "keep",
    "drop_above",
    "spread_scope",
    "spread_attribute",
)


def numbers(project: Project) -> tuple[object, ...]:
    """The settings that decide slots and labels, to be compared before and after a change."""
    return tuple(vars(project)[name] for name in NUMBERS)


def recount_later(project: Project) -> None:
    """Without a worker the tasks stay as they are until `manage.py recount`, or until they are touched."""
    transaction.on_commit(partial(app.send_task, "annotator.tasks.recount", [project.pk]), robust=True)
