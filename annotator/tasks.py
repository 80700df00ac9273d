"""Light work in the background. Importing this module in a worker also starts its heartbeat."""

from celery import shared_task
from django.utils import timezone

from annotator import agreement, assignment, quality, workers
from annotator.importing import withdrawal
from annotator.models import Import, Project
from annotator.pii import scanning
from annotator.review import excluding

__all__ = [
    "assess_annotators",
    "enforce_exclusion",
    "enforce_exclusions",
    "expire_leases",
    "find_pii",
    "finish_withdrawal",
    "finish_withdrawals",
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
def finish_withdrawal(import_id: int) -> int:
    """Removes the tasks of an import that is taken back; returns how many are gone."""
    made = Import.objects.filter(pk=import_id).first()
    return withdrawal.finish(made, now=timezone.now()).removed if made else 0


@shared_task
def finish_withdrawals() -> int:
    """Goes on with imports that a worker was killed in while it took them back."""
    return withdrawal.finish_all(now=timezone.now())
