"""Has the light worker build the snapshots that somebody asked for (annotator/infrastructure/jobs.py)."""

from contextlib import closing
from datetime import timedelta
from functools import partial

from django.db import transaction

from annotator.infrastructure import audit, jobs
from annotator.infrastructure.background import heartbeats, messages
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.storage import disk_space
from annotator.models import Project, User
from rewards.models import SnapshotJob
from rewards.snapshots.building import require_answers, steps

KEPT = timedelta(days=7)
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
    """Builds what is asked for, one snapshot after the other; returns how many jobs have ended."""
    return jobs.run_waiting(_SNAPSHOTS)


def _build(job: SnapshotJob) -> None:
    with jobs.beating(partial(jobs.beat, job)), closing(steps(job.project, now=database_now())) as built:
        for step in built:
            if step.snapshot is None:
                jobs.require_go_on()
            jobs.write(job, tasks=step.tasks, heartbeat_at=database_now())
    jobs.finish(job, snapshot=step.snapshot)


_SNAPSHOTS = jobs.JobKind(
    "snapshot jobs",
    jobs=lambda: SnapshotJob.objects.select_related("project"),
    work=_build,
    lost=f"{jobs.LOST}.",
    fail=lambda code: {"code": code},
    afresh={"tasks": 0},
    # One request of a project waits at a time, and another may have come in meanwhile.
    postponed_as=SnapshotJob.State.BUILDING,
)
