"""The Celery tasks of the machine half: each takes ids and calls one stage function.

The routes in the settings choose their queues.
"""

from typing import Any

from celery import Task, shared_task
from django.conf import settings

from annotator.infrastructure import jobs
from annotator.infrastructure.background import failures, fitness, heartbeats, messages
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.storage.hidden_paths import without_places
from annotator.infrastructure.storage.object_store import StoreAway
from annotator.infrastructure.webhooks import events
from rewards import announcements, scoring, snapshots
from rewards.evaluation import evaluation_jobs
from rewards.models import RewardModel, RunKind, ScoringJob, TrainingRun
from rewards.policies import alignment
from rewards.registry import erasure
from rewards.runs import repeated_runs, runs, training
from rewards.scoring import chunks, former_scores, pass_lanes, unlikely_ratings
from rewards.snapshots import snapshot_jobs
from rewards.trainer import mirroring, owned_runs


@shared_task(bind=True)
def train(self: "Task[Any, Any]", run_id: int) -> None:
    """Carries out a queued run; what happens to it is written to its row.

    The message is acknowledged early: Redis would deliver it again after an hour, in the middle of a longer run. The
    run of a lost worker is recovered from its row.
    """
    try:
        fitness.require_artifacts()
    except fitness.Unfit as unfit:
        runs.hand_on(run_id, unfit)
        return
    run = runs.claim(run_id, worker=str(self.request.hostname), now=database_now())
    if run is None:
        return
    try:
        with fitness.blamed(["train"]), mirroring.alive(run):
            model = _carried_out(run)
    except owned_runs.LostRun:
        return
    except fitness.Unfit as unfit:
        runs.put_back(run, unfit)
        return
    except jobs.Postponed as why:
        runs.postpone(run, why)
        return
    except repeated_runs.NothingNew as repeated:
        runs.drop(run, repeated, now=database_now())
        return
    except Refusal as refused:
        if isinstance(refused, StoreAway) and run.attempt < settings.RUN_ATTEMPTS:
            runs.postpone(run, jobs.Postponed(str(refused)))
        else:
            runs.fail(run, str(refused), now=database_now())
        return
    except Exception as error:
        runs.fail(run, f"{type(error).__name__}: {error}", now=database_now())
        raise
    if model and model.is_champion:
        pass_lanes.wake(model, now=database_now())
    if model:
        messages.send("rewards.tasks.note_unlikely", [run.pk])


def _carried_out(run: TrainingRun) -> RewardModel | None:
    """Takes the run to its end; returns the reward model that it has made."""
    if run.kind == RunKind.POLICY:
        alignment.carry_out(run)
        return None
    return training.carry_out(run)


@shared_task
def evaluate(job_id: int) -> None:
    """Judges a model by the file of a queued job; what happens to it is written to its row."""
    evaluation_jobs.work(job_id)


@shared_task
def recover_lost_evaluations() -> int:
    """Requeues the evaluation jobs of workers that have gone silent, and sends forgotten ones again."""
    with failures.as_whole("recover_lost_evaluations"):
        return evaluation_jobs.recover_lost(now=database_now())


@shared_task
def start_due_runs() -> int:
    """Starts the runs that the projects' policies ask for."""
    return len(runs.start_due(now=database_now()))


@shared_task
def note_unlikely(run_id: int) -> int:
    """Notes the annotations that the run's model finds unlikely; returns how many."""
    run = TrainingRun.objects.select_related("project").filter(pk=run_id).first()
    if run is None:
        return 0
    with failures.as_whole("note_unlikely", run.project):
        return unlikely_ratings.note_once(run, now=database_now())


@shared_task
def note_unlikely_left() -> int:
    """Does `note_unlikely` for runs whose message was lost."""
    return unlikely_ratings.note_left(now=database_now())


@shared_task
def ask_again_for_review() -> int:
    return unlikely_ratings.ask_again()


@shared_task
def build_snapshots() -> int:
    """Builds the snapshots that somebody asked for, those of lost workers and lost messages included."""
    with failures.as_whole("build_snapshots"):
        return snapshot_jobs.build_waiting()


@shared_task
def sweep_files() -> int:
    """Removes the files of erased snapshots, of snapshots that were not finished, and of deleted projects."""
    with failures.as_whole("sweep_files"):
        return len(snapshots.remove_unfinished()) + len(erasure.sweep(now=database_now()))


@shared_task
def recover_lost_runs() -> int:
    """Requeues the runs of workers that have gone silent."""
    with failures.as_whole("recover_lost_runs"):
        return len(runs.recover_lost(now=database_now()))


@shared_task
def watch_workers() -> int:
    """Tells the webhooks of projects that a queue which they need has had no worker for some minutes."""
    with failures.as_whole("watch_workers"):
        return events.watch(announcements.NEEDING, now=database_now())


@shared_task
def score_chunk(lane_id: int, number: int) -> int:
    """Scores one short chunk of a lane, then sends the message for the next one."""
    turn = pass_lanes.take(lane_id, number, now=database_now(), tasks=chunks.pace.tasks)
    if turn is None:
        return 0
    try:
        with fitness.blamed(["score"]):
            scored = pass_lanes.score(turn)
    except fitness.Unfit:
        pass_lanes.hand_on(turn)
        return 0
    except Exception as error:
        pass_lanes.note_failure(turn, f"{type(error).__name__}: {error}")
        raise
    pass_lanes.finish(turn, now=database_now())
    return scored


@shared_task
def score_job(job_id: int) -> None:
    """Answers a small request for scores; an error is written to its row, where the caller waits for it."""
    try:
        with fitness.blamed(["score"]):
            scoring.answer(job_id)
    except fitness.Unfit:
        heartbeats.hand_on("rewards.tasks.score_job", [job_id])
    except Exception as error:
        ScoringJob.objects.filter(pk=job_id).update(
            state=ScoringJob.State.FAILED, error=without_places(f"{type(error).__name__}: {error}")
        )
        raise


@shared_task
def start_due_scoring() -> int:
    """Sends forgotten scoring jobs again and wakes the lanes of champions that have tasks ahead."""
    with failures.as_whole("resend_waiting"):
        scoring.resend_waiting(now=database_now())
    return scoring.start_due(now=database_now())


@shared_task
def thin_scores() -> int:
    """Deletes the scores of champions that were replaced long ago; returns how many."""
    return former_scores.thin(now=database_now())
