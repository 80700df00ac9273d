"""Has the light worker build the snapshots that somebody asked for: a row holds the request, and its result or error.

The row is the truth. Messages carry nothing but the wish that somebody looks, and beat sends one again and again: so a
job whose message or worker was lost is found.
"""

from contextlib import closing
from datetime import timedelta

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import F, QuerySet

from annotator import audit
from annotator.background import fitness, heartbeats, messages
from annotator.background.failures import safe_text
from annotator.background.pulse import Ended, PutDown
from annotator.db import locks
from annotator.db.clock import database_now
from annotator.models import Project, User
from annotator.refusals import Refusal
from annotator.storage import disk_space
from annotator.storage.hidden_paths import without_places
from rewards.models import Snapshot, SnapshotJob
from rewards.snapshots.answers import require_answers
from rewards.snapshots.building import steps

ATTEMPTS = 3
KEPT = timedelta(days=7)
_LOST = f"The worker or the database was lost in each of {ATTEMPTS} attempts. Check their logs and their memory."
_WAITING = (SnapshotJob.State.QUEUED, SnapshotJob.State.BUILDING)
_ENDED = (SnapshotJob.State.DONE, SnapshotJob.State.FAILED)


def request(project: Project, *, by: User) -> SnapshotJob:
    """Queues a snapshot; returns the job that is queued already if there is one, as it will have the same labels.

    Raises:
        Refusal: there is nothing to learn from.
        DiskNearlyFull: there is no room for the files.
        Refusal: nobody listens to the queue `light`.
    """
    require_answers(project)
    disk_space.require_room()
    heartbeats.require("light")
    SnapshotJob.objects.filter(state__in=_ENDED, created_at__lt=database_now() - KEPT).delete()
    with transaction.atomic():
        job, _ = SnapshotJob.objects.get_or_create(
            project=project, state=SnapshotJob.State.QUEUED, defaults={"requested_by": by}
        )
        audit.record("snapshot.requested", f"snapshot job {job.pk}", project=project)
        messages.send_on_commit("rewards.tasks.build_snapshots")
    return job


# The worker's side -----------------------------------------------------------------------------------------


def build_waiting() -> int:
    """Builds what is asked for, one snapshot after the other; returns how many jobs have ended.

    One thread of one worker does so at a time, so that the others have time for everything else.
    """
    ended = 0
    with locks.session_lock("snapshot jobs") as is_alone:
        while is_alone and heartbeats.takes_work() and (job := _claimed()):
            _carry_out(job)
            ended += 1
    return ended


def _claimed() -> SnapshotJob | None:
    """Takes the oldest job. Whoever holds the lock is alone, so one that is being built has lost its worker."""
    waiting = SnapshotJob.objects.filter(state__in=_WAITING)
    for job in waiting.select_related("project").order_by("pk"):
        # One conditional UPDATE decides; the attempt fences off the writes of every earlier worker.
        owned = waiting.filter(pk=job.pk, attempt=job.attempt)
        job.attempt, job.tries, job.state = job.attempt + 1, job.tries + 1, SnapshotJob.State.BUILDING
        if not owned.update(state=job.state, attempt=job.attempt, tries=job.tries, tasks=0):
            continue
        if job.tries <= ATTEMPTS:
            return job
        _fail(job, "worker_lost", _LOST)
    return None


def _carry_out(job: SnapshotJob) -> None:
    try:
        with fitness.blamed():
            snapshot = _built(job)
    except Ended:
        return
    except (PutDown, fitness.Unfit):
        # Not the job's fault: the next worker has as many attempts as this one had.
        _owned(job).update(tries=F("tries") - 1)
    except Refusal as refused:
        _fail(job, refused.code, str(refused))
    except (OperationalError, InterfaceError):
        # The database is away: the job stays as it is, and is taken up again when it is back.
        raise
    except Exception as error:
        if _fail(job, "error", safe_text(error)):  # otherwise it has gone with its project
            raise
    else:
        _owned(job).update(state=SnapshotJob.State.DONE, snapshot=snapshot, finished_at=database_now())


def _built(job: SnapshotJob) -> Snapshot | None:
    with closing(steps(job.project, now=database_now())) as built:
        for step in built:
            if heartbeats.stopping.is_set() and step.snapshot is None:
                raise PutDown
            if not _owned(job).update(tasks=step.tasks):
                raise Ended
    return step.snapshot


def _owned(job: SnapshotJob) -> QuerySet[SnapshotJob]:
    return SnapshotJob.objects.filter(pk=job.pk, attempt=job.attempt, state=SnapshotJob.State.BUILDING)


def _fail(job: SnapshotJob, code: str, error: str) -> bool:
    """Ends the job with its error; returns False where it is not this worker's any more."""
    failed = _owned(job).update(
        state=SnapshotJob.State.FAILED, code=code, error=without_places(error), finished_at=database_now()
    )
    return bool(failed)
