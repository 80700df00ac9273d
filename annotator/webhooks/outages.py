"""Notices queues that nobody listens to, and tells the projects that need them, once for each outage.

The queue `light` is not among them: its workers send the webhooks.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

from django.db import transaction

from annotator.background import heartbeats
from annotator.models import Project, QueueOutage
from annotator.webhooks.events import announce

ANNOUNCED_AFTER = timedelta(minutes=5)


def watch(needing: Mapping[str, Callable[[], Iterable[Project]]], *, now: datetime) -> int:
    """Looks at each queue; `needing` says which projects need it. Returns how many outages were announced.

    Raises redis.RedisError if Redis does not answer.
    """
    queues, announced = heartbeats.listening(), 0
    for queue, projects in needing.items():
        if queues[queue].alive:
            QueueOutage.objects.filter(queue=queue).delete()
            continue
        outage, _is_new = QueueOutage.objects.get_or_create(queue=queue, defaults={"since": now})
        if now - outage.since >= ANNOUNCED_AFTER:
            announced += _announced(outage, projects, now=now)
    return announced


@transaction.atomic
def _announced(outage: QueueOutage, projects: Callable[[], Iterable[Project]], *, now: datetime) -> int:
    # Conditional: of two workers one announces it.
    if not QueueOutage.objects.filter(pk=outage.pk, announced_at=None).update(announced_at=now):
        return 0
    for project in projects():
        announce(project, "worker.missing", queue=outage.queue, since=outage.since.isoformat())
    return 1
