"""Light work in the background. Importing this module in a worker also starts its heartbeat."""

from celery import shared_task
from django.utils import timezone

from annotator import agreement, assignment, logins, quality, workers
from annotator.models import Project
from annotator.pii import scanning
from annotator.projects import deleting
from annotator.review import excluding

__all__ = [
    "assess_annotators",
    "enforce_exclusion",
    "enforce_exclusions",
    "expire_leases",
    "find_pii",
    "finish_deletion",
    "finish_deletions",
    "forget_ended_logins",
    "lift_exclusion",
    "recount",
    "refresh_agreement",
    "workers",
]


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
def refresh_agreement() -> int:
    """Counts what has changed into each project's agreement, so that no page has much to count."""
    return agreement.refresh_all(now=timezone.now())


@shared_task
def assess_annotators() -> int:
    """Looks into the work of annotators wherever enough of it is new; each project in a process of its own."""
    return quality.assess_due(now=timezone.now(), by=quality.assess_apart)


@shared_task
def find_pii() -> int:
    """Looks for personal information wherever nobody has; the recognisers run in a process of their own."""
    return scanning.scan_all(now=timezone.now())


@shared_task
def enforce_exclusion(exclusion_id: int) -> int:
    """Takes an excluded annotator's work out of the labels."""
    return excluding.enforce(exclusion_id, now=timezone.now())


@shared_task
def lift_exclusion(exclusion_id: int) -> int:
    """Brings a readmitted annotator's work back."""
    return excluding.lift(exclusion_id, now=timezone.now())


@shared_task
def enforce_exclusions() -> int:
    """Finishes exclusions that a worker was killed in, and takes out what has come in since."""
    return excluding.enforce_all(now=timezone.now())


@shared_task
def finish_deletion(project_id: int) -> int:
    """Deletes what is left of a project that somebody has deleted."""
    return deleting.finish(project_id)


@shared_task
def finish_deletions() -> None:
    """Finishes deletions that a worker was killed in, or that no worker has heard of; each in a task of its own."""
    for project_id in deleting.unfinished():
        finish_deletion.delay(project_id)


@shared_task
def forget_ended_logins() -> int:
    """Takes away sessions that are over and counts of wrong passwords that no longer matter."""
    return logins.forget_ended(now=timezone.now())
