"""Small requests: a row with the items, a message to a warm worker, and a short wait for its answer."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from django.db import transaction

from annotator import audit
from annotator.background import heartbeats, messages
from annotator.db.clock import database_now
from annotator.models import User
from annotator.refusals import Refusal
from rewards.learning.refusals import Refused
from rewards.models import RewardModel, ScoringJob
from rewards.scoring.model_cache import as_items, scorer_of

if TYPE_CHECKING:
    from rewards.learning.score import Scored

MOST_ITEMS = 1_000
JOBS_KEPT = timedelta(days=1)
JOB_OVERDUE_AFTER = timedelta(minutes=1)
MOST_RESENT = 100
MOST_TOGETHER = 256
AT_FAULT = (Refused, RuntimeError, ValueError)
"""What a model's call raises for items that it cannot take: a template's refusal, too little memory, a bad value."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.05
Item = Mapping[str, Any]


class ScoringFailed(Refusal):
    """The worker could not score what it was given."""

    status = 500
    code = "scoring_failed"


class ScoringTooSlow(Refusal):
    """The worker has not come to the items in time."""

    status = 503
    code = "scoring_too_slow"


def ask(model: RewardModel, items: Sequence[Item], *, by: User, wait_seconds: float) -> ScoringJob:
    """Has a warm worker score the items; comes back when it has, or with the job still queued after the wait.

    Raises:
        NoWorker: nobody listens to the queue `score`.
    """
    heartbeats.require("score")
    ScoringJob.objects.filter(created_at__lt=database_now() - JOBS_KEPT).delete()
    with transaction.atomic():
        audit.record("scoring.asked", f"model version {model.version}", project=model.project, items=len(items))
        job = ScoringJob.objects.create(reward_model=model, requested_by=by, items=list(items))
    return _answered(job, wait_seconds)


def results_of(model: RewardModel, items: Sequence[Item], *, by: User, wait_seconds: float) -> list[dict[str, Any]]:
    """The same for programs that ask without end: no job is left behind, so none can be fetched later.

    Raises:
        NoWorker: nobody listens to the queue `score`.
        ScoringFailed: the worker could not score the items.
        ScoringTooSlow: they were not scored within the wait.
    """
    heartbeats.require("score")
    job = ScoringJob.objects.create(reward_model=model, requested_by=by, items=list(items))
    try:
        _answered(job, wait_seconds)
    finally:
        ScoringJob.objects.filter(pk=job.pk).delete()
    if job.state == ScoringJob.State.FAILED:
        raise ScoringFailed(f"The worker could not score the items: {job.error}")
    if job.results is None:
        raise ScoringTooSlow(f"{len(items)} items took longer than {wait_seconds:.0f} s. Send fewer at once.")
    return list(job.results)


def _answered(job: ScoringJob, wait_seconds: float) -> ScoringJob:
    messages.send("rewards.tasks.score_job", [job.pk])
    end, pause = time.monotonic() + wait_seconds, _FIRST_PAUSE
    while time.monotonic() < end:
        time.sleep(pause)
        pause = min(1.5 * pause, _LONGEST_PAUSE)
        job.refresh_from_db(fields=["state", "results", "error"])
        if job.state != ScoringJob.State.QUEUED:
            break
    return job


def resend_waiting(*, now: datetime) -> int:
    """Jobs whose message was lost with Redis are sent again; a job that is answered twice is answered once."""
    jobs = ScoringJob.objects.filter(state=ScoringJob.State.QUEUED, created_at__lt=now - JOB_OVERDUE_AFTER)
    waiting = list(jobs.values_list("pk", flat=True)[:MOST_RESENT]) if heartbeats.listening()["score"].alive else []
    for job in waiting:
        messages.send("rewards.tasks.score_job", [job])
    return len(waiting)


# The worker's side -----------------------------------------------------------------------------------------


@transaction.atomic
def answer(job_id: int) -> None:
    """Fills the job's results unless somebody has, or is at it."""
    waiting = ScoringJob.objects.filter(state=ScoringJob.State.QUEUED).select_for_update(skip_locked=True)
    job = waiting.filter(pk=job_id).first()
    if job is None:
        return
    others = waiting.filter(reward_model=job.reward_model_id).exclude(pk=job_id).order_by("pk")[: MOST_TOGETHER - 1]
    jobs = [job, *_fitting(others, MOST_ITEMS - len(job.items))]
    model = job.reward_model
    try:
        scored = _scored(model, jobs)
    except AT_FAULT:
        if len(jobs) == 1:
            raise
        jobs = [job]  # the fault may be another's, who will be answered alone
        scored = _scored(model, jobs)
    _store(jobs, scored)


def _fitting(jobs: Iterable[ScoringJob], room: int) -> list[ScoringJob]:
    """Jobs that wait for the same model go through it together: trainers send one item each, by the hundred."""
    fitting = []
    for job in jobs:
        room -= len(job.items)
        if room < 0:
            break
        fitting.append(job)
    return fitting


def _scored(model: RewardModel, jobs: Sequence[ScoringJob]) -> "list[Scored]":
    """What the model says of the jobs' items, one after another. It asks the database nothing."""
    return scorer_of(model).score(as_items([item for job in jobs for item in job.items]))


def _store(jobs: Sequence[ScoringJob], scored: "Sequence[Scored]") -> None:
    left = iter(scored)
    for job in jobs:
        job.results = [asdict(each) for each in islice(left, len(job.items))]
        job.state = ScoringJob.State.DONE
    ScoringJob.objects.bulk_update(jobs, ["results", "state"])
