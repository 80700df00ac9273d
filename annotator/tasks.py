"""Celery tasks of the queue `light`. Importing this module in a worker also starts its heartbeat.

The stages keep failures as rows, project by project (annotator/infrastructure/background/failures.py).
"""

from celery import shared_task

from annotator.accounts import logins
from annotator.analysis import figures
from annotator.analysis.agreement import totals
from annotator.analysis.quality import assessment
from annotator.infrastructure import request_logs  # noqa: F401 - it receives signals
from annotator.infrastructure.background import beat_schedule, failures, heartbeats  # noqa: F401 - beat_schedule receives a signal
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.storage import artifacts, store
from annotator.infrastructure.webhooks import deliveries
from annotator.managing import deletion
from annotator.models import Project
from annotator.outputs.exporting import export_jobs
from annotator.outputs.releases import release_jobs
from annotator.reading.search import word_index
from annotator.stages import assignment
from annotator.stages.annotation import drafts
from annotator.stages.importing import jobs as import_jobs
from annotator.stages.importing import withdrawal
from annotator.stages.pii import scans
from annotator.stages.review import bulk_changes, exclusions


@shared_task
def expire_leases() -> int:
    """Frees leases that ran out, so that pages show right counts even where nobody claims."""
    return assignment.expire_all(now=database_now())


@shared_task
def recount(project_id: int) -> int:
    """Brings a project's tasks in line with changed numbers of its protocol."""
    project = Project.objects.filter(pk=project_id).first()
    if project is None:
        return 0
    with failures.as_whole("recount", project):
        return assignment.recount_wanted(project, now=database_now())


@shared_task
def recount_changed() -> int:
    """Does the work of `recount` for every project whose message was lost."""
    return assignment.recount_all_wanted(now=database_now())


@shared_task
def refresh_agreement() -> int:
    """Counts changed ratings into each project's agreement, so that no page has many to count."""
    return totals.refresh_all(now=database_now())


@shared_task
def assess_annotators() -> int:
    """Assesses annotators wherever enough of their work is new, each project in a process of its own."""
    return assessment.assess_due(now=database_now(), by=assessment.assess_apart)


@shared_task
def find_pii() -> int:
    """Looks for personal information in tasks not searched yet; the recognisers run in a process of their own."""
    return scans.scan_all(now=database_now())


@shared_task
def enforce_exclusions() -> int:
    """Takes excluded people's work out of the labels, what came in since as well; brings back who was readmitted."""
    return exclusions.enforce_all(now=database_now())


@shared_task
def finish_deletions() -> int:
    """Deletes what is left of the projects that somebody has deleted."""
    return deletion.finish_all()


@shared_task
def forget_ended_logins() -> int:
    """Deletes sessions that are over and counts of wrong passwords that no longer matter."""
    with failures.as_whole("forget_ended_logins"):
        return logins.forget_ended(now=database_now())


@shared_task
def forget_old_drafts() -> int:
    """Deletes half-filled forms that their annotators left long ago; returns how many."""
    with failures.as_whole("forget_old_drafts"):
        return drafts.forget_old(now=database_now())


@shared_task
def finish_withdrawals() -> int:
    """Deletes the tasks of imports that are taken back."""
    return withdrawal.finish_all(now=database_now())


@shared_task
def finish_bulk_changes() -> int:
    """Carries out changes of many tasks, or undoes them."""
    return bulk_changes.finish_all(now=database_now())


@shared_task
def count_figures(project_id: int) -> None:
    """Counts the figures of a project's overview, which somebody has asked for."""
    project = Project.objects.standing().select_related("rubric").filter(pk=project_id).first()
    if project:
        with failures.as_whole("count_figures", project):
            figures.refresh(project, now=database_now())


@shared_task
def take_words() -> int:
    """Takes the words of new and changed tasks, by which they are found."""
    return word_index.take_words()


@shared_task
def run_imports() -> int:
    """Imports the uploaded files that wait, those of lost workers and lost messages included."""
    with failures.as_whole("run_imports"):
        return import_jobs.run_waiting()


@shared_task
def sweep_imports() -> int:
    """Removes the files of imports that have ended, and of uploads that nobody started."""
    with failures.as_whole("sweep_imports"):
        return import_jobs.sweep(now=database_now())


@shared_task
def run_exports() -> int:
    """Writes the files that people have asked for, those of lost workers and lost messages included."""
    with failures.as_whole("run_exports"):
        return export_jobs.run_waiting()


@shared_task
def sweep_exports() -> int:
    """Removes the files of exports that are old or withdrawn."""
    with failures.as_whole("sweep_exports"):
        return export_jobs.sweep(now=database_now())


@shared_task
def send_webhooks() -> int:
    """Sends what is due to webhooks, what lost workers had taken included."""
    with failures.as_whole("send_webhooks"):
        return deliveries.send_waiting()


@shared_task
def sweep_webhooks() -> int:
    """Deletes the log of old deliveries to webhooks."""
    with failures.as_whole("sweep_webhooks"):
        return deliveries.sweep(now=database_now())


@shared_task
def write_releases() -> int:
    """Writes the files of the releases that wait, those of lost workers and lost messages included."""
    with failures.as_whole("write_releases"):
        return release_jobs.run_waiting()


@shared_task
def erase_gone_artifacts() -> int:
    """Deletes from the object store what nobody may read any more."""
    with failures.as_whole("erase_gone_artifacts"):
        artifacts.require_ours()
        return store.erase_gone()


@shared_task
def erase_orphaned_artifacts() -> int:
    """Deletes what killed processes have left in the object store."""
    with failures.as_whole("erase_orphaned_artifacts"):
        artifacts.require_ours()
        return store.erase_orphans(now=database_now())


@shared_task
def sweep_releases() -> int:
    """Removes the files of releases that are withdrawn or gone."""
    with failures.as_whole("sweep_releases"):
        return release_jobs.sweep()
