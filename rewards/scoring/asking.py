"""Small requests: a row with the items, a message to a warm worker, and a short wait for its answer."""

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from annotator import audit, workers
from annotator.celery import app
from annotator.models import User
from annotator.refusals import Refusal
from rewards.models import RewardModel, ScoringJob
from rewards.scoring.loaded import as_items, scorer_of

MOST_ITEMS = 1_000
JOBS_KEPT = timedelta(days=1)
JOB_OVERDUE_AFTER = timedelta(minutes=1)
MOST_RESENT = 100
_POLL_SECONDS = 0.02


class ScoringFailed(Refusal):
    """The worker could not score what it was given."""

    status = 500
    code = "scoring_failed"


def ask(model: RewardModel, items: Sequence[Mapping[str, Any]], *, by: User, wait_seconds: float) -> ScoringJob:
    """Has a warm worker score the items; comes back when it has, or with the job still queued after the wait.

    Raises:
        NoWorker: nobody listens to the queue `score`.
    """
    workers.require("score")
    ScoringJob.objects.filter(created_at__lt=timezone.now() - JOBS_KEPT).delete()
    with transaction.atomic():
        job = ScoringJob.objects.create(reward_model=model, requested_by=by, items=list(items))
        audit.record("scoring.asked", f"model version {model.version}", project=model.project, items=len(items))
    app.send_task("rewards.tasks.score_job", [job.pk])
    end = time.monotonic() + wait_seconds
    while time.monotonic() < end:
        time.sleep(_POLL_SECONDS)
        job.refresh_from_db(fields=["state", "results", "error"])
        if job.state != ScoringJob.State.QUEUED:
            break
    return job


def resend_waiting(*, now: datetime) -> int:
    """Jobs whose message was lost with Redis are sent again; a job that is answered twice is answered once."""
    jobs = ScoringJob.objects.filter(state=ScoringJob.State.QUEUED, created_at__lt=now - JOB_OVERDUE_AFTER)
    waiting = list(jobs.values_list("pk", flat=True)[:MOST_RESENT]) if workers.listening()["score"].alive else []
    for job in waiting:
        app.send_task("rewards.tasks.score_job", [job])
    return len(waiting)


def answer(job: ScoringJob) -> None:
    """Fills the job's results."""
    results = scorer_of(job.reward_model).score(as_items(job.items))
    job.results = [{"scores": dict(each.scores), "reward": each.reward} for each in results]
    job.state = ScoringJob.State.DONE
    job.save(update_fields=["results", "state"])
