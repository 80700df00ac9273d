"""What Celery carries: ids in, one stage function called. Queues by the routes in the settings."""

from typing import Any

from celery import Task, shared_task
from django.utils import timezone

from annotator.refusals import Refusal
from rewards import doubting, erasing, retraining, scoring, training, unlikely
from rewards.models import ScoringJob, TrainingRun
from rewards.places import without_places
from rewards.scoring import lanes


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
    except retraining.PutDown as why:
        retraining.put_down(run, why)
        return
    except retraining.NothingNew as repeated:
        retraining.drop(run, repeated, now=timezone.now())
        return
    except Refusal as refused:
        retraining.fail(run, str(refused), now=timezone.now())
        return
    except Exception as error:
        retraining.fail(run, f"{type(error).__name__}: {error}", now=timezone.now())
        raise
    if model and model.is_champion:
        lanes.wake(model, now=timezone.now())
    if model:
        note_unlikely.delay(run.pk)


@shared_task
def start_due_runs() -> int:
    return len(retraining.start_due(now=timezone.now()))


@shared_task
def note_unlikely(run_id: int) -> int:
    run = TrainingRun.objects.select_related("project").filter(pk=run_id).first()
    return unlikely.note(run, now=timezone.now()) if run else 0


@shared_task
def ask_again_for_review() -> int:
    return unlikely.ask_again()


@shared_task
def sweep_files() -> int:
    return len(erasing.sweep())


@shared_task
def recover_lost_runs() -> int:
    return len(retraining.recover_lost(now=timezone.now()))


@shared_task
def score_chunk(lane_id: int, number: int) -> int:
    """One short chunk of a lane, then a message for its next."""
    turn = lanes.take(lane_id, number, now=timezone.now(), tasks=lanes.pace.tasks)
    if turn is None:
        return 0
    try:
        scored = lanes.score(turn)
    except Exception as error:
        lanes.note_failure(turn, f"{type(error).__name__}: {error}")
        raise
    lanes.finish(turn, now=timezone.now())
    return scored


@shared_task
def score_job(job_id: int) -> None:
    try:
        scoring.answer(job_id)
    except Exception as error:
        ScoringJob.objects.filter(pk=job_id).update(
            state=ScoringJob.State.FAILED, error=without_places(f"{type(error).__name__}: {error}")
        )
        raise


@shared_task
def start_due_scoring() -> int:
    scoring.resend_waiting(now=timezone.now())
    return scoring.start_due(now=timezone.now())


@shared_task
def order_queues() -> int:
    return doubting.order_queues()
