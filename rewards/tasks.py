"""What Celery carries: ids in, one stage function called. Queues by the routes in the settings."""

from typing import Any

from celery import Task, shared_task
from django.utils import timezone

from annotator.refusals import Refusal
from rewards import retraining, scoring, training
from rewards.models import RewardModel, ScoringJob


@shared_task(bind=True)
def train(self: "Task[Any, Any]", run_id: int) -> None:
    """The train worker's door. Acknowledged early: a lost worker's run is recovered from its row."""
    run = retraining.claim(run_id, worker=str(self.request.hostname), now=timezone.now())
    if run is None:
        return
    try:
        model = training.carry_out(run)
    except retraining.LostRun:
        return
    except retraining.PutDown:
        retraining.put_down(run)
        return
    except Refusal as refused:
        retraining.fail(run, str(refused), now=timezone.now())
        return
    except Exception as error:
        retraining.fail(run, f"{type(error).__name__}: {error}", now=timezone.now())
        raise
    if model and model.is_champion:
        score_responses.delay(model.pk)


@shared_task
def start_due_runs() -> int:
    return len(retraining.start_due(now=timezone.now()))


@shared_task
def recover_lost_runs() -> int:
    return len(retraining.recover_lost(now=timezone.now()))


@shared_task
def score_responses(model_id: int) -> int:
    """One chunk, then a message for the next: small requests get their turn in between."""
    model = RewardModel.objects.filter(pk=model_id).first()
    scored = scoring.score_chunk(model) if model else 0
    if scored:
        score_responses.delay(model_id)
    return scored


@shared_task
def score_job(job_id: int) -> None:
    job = ScoringJob.objects.select_related("reward_model").filter(pk=job_id, state=ScoringJob.State.QUEUED).first()
    if job is None:
        return
    try:
        scoring.answer(job)
    except Exception as error:
        ScoringJob.objects.filter(pk=job_id).update(
            state=ScoringJob.State.FAILED, error=f"{type(error).__name__}: {error}"
        )
        raise


@shared_task
def start_due_scoring() -> int:
    scoring.resend_waiting(now=timezone.now())
    return scoring.start_due()
