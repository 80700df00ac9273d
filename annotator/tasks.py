"""Light work in the background. Importing this module in a worker also starts its heartbeat."""

from celery import shared_task
from django.utils import timezone

from annotator import assignment, workers

__all__ = ["expire_leases", "workers"]


@shared_task
def expire_leases() -> int:
    """Frees leases that ran out, so that counts are right on pages even where nobody claims."""
    return assignment.expire_all(now=timezone.now())
