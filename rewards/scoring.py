"""The champion over every response, in short chunks that do no harm twice; and small requests at once.

Only the worker of the queue `score` calls what loads a model.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from annotator import audit, workers
from annotator.celery import app
from annotator.models import Project, Response, User
from annotator.refusals import Refusal
from rewards.learning.data import Item, Turn
from rewards.models import RewardModel, Score, ScoringJob

if TYPE_CHECKING:
    from rewards.learning.score import Scorer

CHUNK = 64
MOST_ITEMS = 1_000
JOBS_KEPT = timedelta(days=1)
JOB_OVERDUE_AFTER = timedelta(minutes=1)
MOST_RESENT = 100
_POLL_SECONDS = 0.02
_loading = threading.Lock()


class NoChampion(Refusal):
    """There is no model to score with."""

    code = "no_champion"


class ScoringFailed(Refusal):
    """The worker could not score what it was given."""

    status = 500
    code = "scoring_failed"


def champion(project: Project) -> RewardModel:
    found = RewardModel.objects.filter(project=project, is_champion=True).first()
    if not found:
        raise NoChampion(f"{project.name} has no champion yet: retrain it, or promote a model.")
    return found


# Every response --------------------------------------------------------------------------------------------


def unscored(model: RewardModel) -> Any:
    """Responses of the model's project that it has not scored."""
    done = Score.objects.filter(reward_model=model, response=OuterRef("pk"))
    return Response.objects.filter(~Exists(done), task__project=model.project_id).exclude(task__state="retired")


@transaction.atomic
def start(model: RewardModel) -> None:
    """Sends the model over its project's responses.

    Raises:
        NoWorker: nobody listens to the queue `score`.
    """
    workers.require("score")
    audit.record("scoring.started", f"model version {model.version}", project=model.project)
    _send(model)


def start_due() -> int:
    """Starts scoring wherever the champion has responses to score; returns in how many projects."""
    waiting = [model for model in RewardModel.objects.filter(is_champion=True) if unscored(model).exists()]
    for model in waiting:
        _send(model)
    return len(waiting)


def _send(model: RewardModel) -> None:
    transaction.on_commit(partial(app.send_task, "rewards.tasks.score_responses", [model.pk]))


def score_chunk(model: RewardModel) -> int:
    """Scores up to CHUNK responses that have no score yet; returns how many. Two workers may overlap: one row stays."""
    responses = list(unscored(model).select_related("task").order_by("task", "position")[:CHUNK])
    if not responses:
        return 0
    items = [{"conversation": each.task.conversation, "response": each.text} for each in responses]
    results = _scorer(str(model.directory())).score(_as_items(items))
    Score.objects.bulk_create(
        [
            Score(reward_model=model, response=response, scores=dict(result.scores), reward=result.reward)
            for response, result in zip(responses, results, strict=True)
        ],
        ignore_conflicts=True,
    )
    return len(responses)


@lru_cache(maxsize=1)
def _loaded(directory: str) -> "Scorer":
    from rewards.learning.score import load  # noqa: PLC0415  it imports torch

    return load(Path(directory))


def _scorer(directory: str) -> "Scorer":
    """The model last used stays in memory."""
    with _loading:
        return _loaded(directory)


def _as_items(items: Sequence[Mapping[str, Any]]) -> list[Item]:
    return [
        Item(str(number), tuple(Turn(**turn) for turn in each["conversation"]), each["response"])
        for number, each in enumerate(items)
    ]


# Small requests --------------------------------------------------------------------------------------------


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
    results = _scorer(str(job.reward_model.directory())).score(_as_items(job.items))
    job.results = [{"scores": dict(each.scores), "reward": each.reward} for each in results]
    job.state = ScoringJob.State.DONE
    job.save(update_fields=["results", "state"])
