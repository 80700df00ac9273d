"""Removes entries of earlier versions from beat's table, which keeps what it has once been given."""

from typing import Any

from celery.signals import beat_init
from django.conf import settings
from django.db.models import Q
from django_celery_beat.models import PeriodicTask

OURS = Q(task__startswith="annotator.tasks.") | Q(task__startswith="rewards.tasks.")


@beat_init.connect
def forget_old_entries(**_: Any) -> int:
    """Deletes the entries of ours that the schedule no longer has; returns how many.

    Workers would log an error for each message about a task that they do not know.
    """
    old = list(PeriodicTask.objects.filter(OURS).exclude(name__in=settings.CELERY_BEAT_SCHEDULE))
    # One by one, as the signals of a row tell beat to read its table again.
    for entry in old:
        entry.delete()
    return len(old)
