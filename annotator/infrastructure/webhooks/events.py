"""The events of webhooks by name, and how a stage writes one.

An event is a row in the transaction of the change, so what is rolled back is never sent. It holds ids, states and
counts, and no text or name of a person: what has left the installation cannot be redacted.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

from django.db import transaction
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from annotator.infrastructure.background import heartbeats, messages
from annotator.infrastructure.db.statements import Statement
from annotator.models import Project, QueueOutage

TEST = "webhook.test"
EVENTS: Mapping[str, Promise] = {
    "task.completed": _("A task has all the ratings that it wants."),
    "task.quarantined": _("A task has been set aside."),
    "task.disputed": _("A reviewer should look at a task."),
    "label.changed": _("Labels of a task were made, changed or withdrawn."),
    "run.ended": _("A training run has ended, or its model waits for a decision."),
    "model.promoted": _("A model has become the champion."),
    "release.ready": _("A release can be downloaded."),
    "worker.missing": _("No worker has listened to a queue for 5 minutes."),
}
"""What a webhook may ask for. A test is sent whatever it asks for."""


def announce(project: Project, event: str, **data: str | int | None) -> int:
    """Writes the event for the project's webhooks that want it; returns how many do. Call it in a transaction."""
    row = _ANNOUNCE.row(project=project.pk, event=event, data=json.dumps(data))
    written: int = row[0] if row else 0
    if written:
        messages.send_on_commit("annotator.tasks.send_webhooks")
    return written


_ANNOUNCE = Statement("SELECT annotator_announce(%(project)s, %(event)s, %(data)s::jsonb)")


def release_ready(project: Project, *, release: int, tasks: int, content_hash: str) -> int:
    """Announces a release that can be downloaded: its number, how many tasks it holds, and the hash of its content."""
    return announce(project, "release.ready", release=release, tasks=tasks, content_hash=content_hash)


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
