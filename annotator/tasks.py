"""Light work in the background. Importing this module in a worker also starts its heartbeat."""

from celery import shared_task
from django.utils import timezone

from annotator import assignment, workers
from annotator.models import Project
from annotator.pii import scanning

__all__ = ["expire_leases", "find_pii", "recount", "workers"]


@shared_task
def expire_leases() -> int:
    """Frees leases that ran out, so that counts are right on pages even where nobody claims."""
    return assignment.expire_all(now=timezone.now())


@shared_task
def recount(project_id: int) -> int:
    """Brings a project's tasks in line with numbers of the protocol that have changed."""
    project = Project.objects.filter(pk=project_id).first()
    return assignment.recount(project, now=timezone.now()) if project else 0


@shared_task
def find_pii() -> int:
    """Looks for personal information wherever nobody has; the recognisers run in a process of their own."""
    return scanning.scan_all(now=timezone.now())
