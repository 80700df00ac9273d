"""What Celery carries: ids in, one stage function called. Queues by the routes in the settings."""

from typing import Any

from celery import Task, shared_task

from annotator.background import failures, messages
from annotator.db.clock import database_now
from annotator.refusals import Refusal
from annotator.storage.hidden_paths import without_places
from rewards import erasure, runs, scoring, training, uncertainty_order, unlikely_ratings
from rewards.models import ScoringJob, TrainingRun
from rewards.scoring import pass_lanes


@shared_task(bind=True)
def train(self: "Task[Any, Any]", run_id: int) -> None:
    """The train worker's door. Acknowledged early: a lost worker's run is recovered from its row."""
    run = runs.claim(run_id, worker=str(self.request.hostname), now=database_now())
    if run is None:
        return
    try:
        model = training.carry_out(run)
    except runs.LostRun:
        return
    except runs.PutDown as why:
        runs.put_down(run, why)
        return
    except runs.NothingNew as repeated:
        runs.drop(run, repeated, now=database_now())
        return
    except Refusal as refused:
        runs.fail(run, str(refused), now=database_now())
        return
    except Exception as error:
        runs.fail(run, f"{type(error).__name__}: {error}", now=database_now())
        raise
    if model and model.is_champion:
        pass_lanes.wake(model, now=database_now())
    if model:
        messages.send("rewards.tasks.note_unlikely", [run.pk])


@shared_task
def start_due_runs() -> int:
    return len(runs.start_due(now=database_now()))


@shared_task
def note_unlikely(run_id: int) -> int:
    run = TrainingRun.objects.select_related("project").filter(pk=run_id).first()
    if run is None:
        return 0
    with failures.as_whole("note_unlikely", run.project):
        return unlikely_ratings.note_once(run, now=database_now())


@shared_task
def note_unlikely_left() -> int:
    return unlikely_ratings.note_left(now=database_now())


@shared_task
def ask_again_for_review() -> int:
    return unlikely_ratings.ask_again()


@shared_task
def sweep_files() -> int:
    with failures.as_whole("sweep_files"):
        return len(erasure.sweep(now=database_now()))


@shared_task
def recover_lost_runs() -> int:
    with failures.as_whole("recover_lost_runs"):
        return len(runs.recover_lost(now=database_now()))


@shared_task
def score_chunk(lane_id: int, number: int) -> int:
    """One short chunk of a lane, then a message for its next."""
    turn = pass_lanes.take(lane_id, number, now=database_now(), tasks=pass_lanes.pace.tasks)
    if turn is None:
        return 0
    try:
        scored = pass_lanes.score(turn)
    except Exception as error:
        pass_lanes.note_failure(turn, f"{type(error).__name__}: {error}")
        raise
    pass_lanes.finish(turn, now=database_now())
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
    with failures.as_whole("resend_waiting"):
        scoring.resend_waiting(now=database_now())
    return scoring.start_due(now=database_now())


@shared_task
def order_queues() -> int:
    return uncertainty_order.order_queues()
