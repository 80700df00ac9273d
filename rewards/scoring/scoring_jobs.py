"""Answers small requests: a row holds the items, a message wakes a warm worker, and the caller waits for a moment."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from django.db import transaction

from annotator.infrastructure import audit
from annotator.infrastructure.background import heartbeats, messages
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.refusals import Refusal
from annotator.models import User
from rewards.learning.refusals import Refused
from rewards.models import RewardModel, ScoringJob
from rewards.scoring.chunks import as_items, scorer_of

if TYPE_CHECKING:
    from rewards.learning.score import Scored

MOST_ITEMS = 1_000
JOBS_KEPT = timedelta(days=1)
JOB_OVERDUE_AFTER = timedelta(minutes=1)
MOST_RESENT = 100
MOST_TOGETHER = 256
AT_FAULT = (Refused, RuntimeError, ValueError)
"""The errors of a model's call for items that it cannot take: a template's refusal, too little memory, a bad value."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.05
Item = Mapping[str, Any]


class ScoringFailed(Refusal):
    """The worker could not score the items."""

    status = 500
    code = "scoring_failed"


class ScoringTooSlow(Refusal):
    """The worker did not score the items within the wait."""

    status = 503
    code = "scoring_too_slow"


def ask(model: RewardModel, items: Sequence[Item], *, by: User, wait_seconds: float) -> ScoringJob:
    """Has a warm worker score the items; returns the job when it is done, or still queued after the wait.

    Raises:
        Refusal: nobody listens to the queue `score`.
    """
    heartbeats.require("score")
    ScoringJob.objects.filter(created_at__lt=database_now() - JOBS_KEPT).delete()
    with transaction.atomic():
        audit.record("scoring.asked", f"model version {model.version}", project=model.project, items=len(items))
        job = ScoringJob.objects.create(reward_model=model, requested_by=by, items=list(items))
    return _answered(job, wait_seconds)


def results_of(model: RewardModel, items: Sequence[Item], *, by: User, wait_seconds: float) -> list[dict[str, Any]]:
    """Returns the results for programs that ask without end: no job is kept, so none can be fetched later.

    Raises:
        Refusal: nobody listens to the queue `score`.
        ScoringFailed: the worker could not score the items.
        ScoringTooSlow: they were not scored within the wait.
    """
    heartbeats.require("score")
    job = ScoringJob.objects.create(reward_model=model, requested_by=by, items=list(items))
    try:
        _answered(job, wait_seconds)
    finally:
        # A trainer may ask a hundred times a second: rows that were kept for a day would fill the table.
        ScoringJob.objects.filter(pk=job.pk).delete()
    if job.state == ScoringJob.State.FAILED:
        raise ScoringFailed(f"The worker could not score the items: {job.error}")
    if job.results is None:
        raise ScoringTooSlow(f"{len(items)} items took longer than {wait_seconds:.0f} s. Send fewer at once.")
    return list(job.results)


def _answered(job: ScoringJob, wait_seconds: float) -> ScoringJob:
    # Sent after the row is committed: a worker that is quicker would find no job.
    messages.send("rewards.tasks.score_job", [job.pk])
    end, pause = time.monotonic() + wait_seconds, _FIRST_PAUSE
    while time.monotonic() < end:
        time.sleep(pause)
        # A warm worker answers in milliseconds; for a slow one the database is not asked 200 times a second.
        pause = min(1.5 * pause, _LONGEST_PAUSE)
        job.refresh_from_db(fields=["state", "results", "error"])
        if job.state != ScoringJob.State.QUEUED:
            break
    return job


def resend_waiting(*, now: datetime) -> int:
    """Sends jobs again whose message was lost with Redis; returns how many. A message too many changes nothing."""
    jobs = ScoringJob.objects.filter(state=ScoringJob.State.QUEUED, created_at__lt=now - JOB_OVERDUE_AFTER)
    waiting = list(jobs.values_list("pk", flat=True)[:MOST_RESENT]) if heartbeats.listening()["score"].alive else []
    for job in waiting:
        messages.send("rewards.tasks.score_job", [job])
    return len(waiting)


# The worker's side -----------------------------------------------------------------------------------------


@transaction.atomic
def answer(job_id: int) -> None:
    """Fills the job's results, and those of other jobs that wait for the same model.

    Does nothing if another worker has answered the job or is answering it.
    """
    # The rows stay locked while the model works. Other workers skip them, so that none waits, and none scores them too;
    # a worker that is killed releases them.
    waiting = ScoringJob.objects.filter(state=ScoringJob.State.QUEUED).select_for_update(skip_locked=True)
    job = waiting.filter(pk=job_id).first()
    if job is None:
        return
    # Trainers send one item each, by the hundred: together they take one pass through the model.
    waiting_too = waiting.filter(reward_model=job.reward_model_id).exclude(pk=job_id).order_by("pk")
    jobs = [job, *_fitting(waiting_too[: MOST_TOGETHER - 1], MOST_ITEMS - len(job.items))]
    model = job.reward_model
    try:
        scored = _scored(model, jobs)
    except AT_FAULT:
        if len(jobs) == 1:
            raise
        # The fault may be in another job's items: this one is answered alone, and so will the others be.
        jobs = [job]
        scored = _scored(model, jobs)
    _store(jobs, scored)


def _fitting(jobs: Iterable[ScoringJob], room: int) -> list[ScoringJob]:
    """Returns the first jobs that together hold at most `room` items."""
    fitting = []
    for job in jobs:
        room -= len(job.items)
        if room < 0:
            break
        fitting.append(job)
    return fitting


def _scored(model: RewardModel, jobs: Sequence[ScoringJob]) -> "list[Scored]":
    """Returns the scores of all items of the jobs, in their order.

    It does not use the database: an error in it must not break the transaction that holds the jobs' locks.
    """
    return scorer_of(model).score(as_items([item for job in jobs for item in job.items]))


def _store(jobs: Sequence[ScoringJob], scored: "Sequence[Scored]") -> None:
    remaining = iter(scored)
    for job in jobs:
        job.results = [asdict(result) for result in islice(remaining, len(job.items))]
        job.state = ScoringJob.State.DONE
    ScoringJob.objects.bulk_update(jobs, ["results", "state"])
