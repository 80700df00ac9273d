"""Light work in the background. Importing this module in a worker also starts its heartbeat.

Failures are kept as rows by the stages, project by project (annotator/background/failures.py).
"""

from celery import shared_task

from annotator import agreement, assignment, quality
from annotator.accounts import logins
from annotator.background import failures, heartbeats
from annotator.db.clock import database_now
from annotator.importing import withdrawal
from annotator.models import Import, Project
from annotator.pii import scans
from annotator.projects import deletion
from annotator.review import exclusions

__all__ = [
    "assess_annotators",
    "enforce_exclusion",
    "enforce_exclusions",
    "expire_leases",
    "find_pii",
    "finish_deletion",
    "finish_deletions",
    "finish_withdrawal",
    "finish_withdrawals",
    "forget_ended_logins",
    "heartbeats",
    "lift_exclusion",
    "recount",
    "recount_changed",
    "refresh_agreement",
]


@shared_task
def expire_leases() -> int:
    """Frees leases that ran out, so that counts are right on pages even where nobody claims."""
    return assignment.expire_all(now=database_now())


@shared_task
def recount(project_id: int) -> int:
    """Brings a project's tasks in line with numbers of the protocol that have changed."""
    project = Project.objects.filter(pk=project_id).first()
    if project is None:
        return 0
    with failures.as_whole("recount", project):
        return assignment.recount_wanted(project, now=database_now())


@shared_task
def recount_changed() -> int:
    """The same wherever a message of it was lost."""
    return assignment.recount_all_wanted(now=database_now())


@shared_task
def refresh_agreement() -> int:
    """Counts what has changed into each project's agreement, so that no page has much to count."""
    return agreement.refresh_all(now=database_now())


@shared_task
def assess_annotators() -> int:
    """Looks into the work of annotators wherever enough of it is new; each project in a process of its own."""
    return quality.assess_due(now=database_now(), by=quality.assess_apart)


@shared_task
def find_pii() -> int:
    """Looks for personal information wherever nobody has; the recognisers run in a process of their own."""
    return scans.scan_all(now=database_now())


@shared_task
def enforce_exclusion(exclusion_id: int) -> int:
    """Takes an excluded annotator's work out of the labels."""
    with failures.as_whole("enforce_exclusions", _project_of(exclusion_id)):
        return exclusions.enforce(exclusion_id, now=database_now())


@shared_task
def lift_exclusion(exclusion_id: int) -> int:
    """Brings a readmitted annotator's work back."""
    with failures.as_whole("enforce_exclusions", _project_of(exclusion_id)):
        return exclusions.lift(exclusion_id, now=database_now())


def _project_of(exclusion_id: int) -> Project | None:
    return Project.objects.filter(exclusions=exclusion_id).first()


@shared_task
def enforce_exclusions() -> int:
    """Finishes exclusions and readmissions that a worker was killed in, and takes out what has come in since."""
    return exclusions.enforce_all(now=database_now())


@shared_task
def finish_deletion(project_id: int) -> int:
    """Deletes what is left of a project that somebody has deleted."""
    return deletion.finish(project_id)


@shared_task
def finish_deletions() -> int:
    """Finishes deletions that a worker was killed in, or that no worker has heard of."""
    return deletion.finish_all()


@shared_task
def forget_ended_logins() -> int:
    """Takes away sessions that are over and counts of wrong passwords that no longer matter."""
    with failures.as_whole("forget_ended_logins"):
        return logins.forget_ended(now=database_now())


@shared_task
def finish_withdrawal(import_id: int) -> int:
    """Removes the tasks of an import that is taken back; returns how many are gone."""
    made = Import.objects.filter(pk=import_id).first()
    return withdrawal.finish(made, now=database_now()).removed if made else 0


@shared_task
def finish_withdrawals() -> int:
    """Goes on with imports that a worker was killed in while it took them back."""
    return withdrawal.finish_all(now=database_now())
