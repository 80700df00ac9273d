"""Judges models by files that people send: the web keeps the file, a train worker measures, the row tells how it went.

The row is the truth: Celery carries ids, and a message too many or too few changes nothing.
"""

import shutil
from contextlib import ExitStack
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Coalesce
from django.utils.text import get_valid_filename
from django.utils.translation import gettext as _

from annotator import audit
from annotator.background import fitness, heartbeats, messages
from annotator.db.clock import database_now
from annotator.db.retries import outlasting_outages
from annotator.models import User
from annotator.projects.archive import require_in_use
from annotator.refusals import Refusal
from annotator.storage import artifacts, disk_space
from annotator.storage.hidden_paths import without_places
from rewards import evaluation
from rewards.models import EvaluationJob, RewardModel
from rewards.trainer_process import events_in

MOST_WAITING = 20
"""The unfinished jobs that a project may have: each holds a file on the disk."""
SURELY_FORGOTTEN_AFTER = timedelta(hours=1)
"""A queued job without a sign for this long is sent again, even if messages wait: they may belong to other jobs."""
_CHUNK = 1 << 20


class _LostJob(Exception):
    """Another attempt owns the job now, or somebody removed it: this worker has to stop working on it."""


class _PutDown(Exception):
    """The worker was asked to stop in the middle of the job, or does not see its file yet."""


def request(model: RewardModel, file: IO[bytes], *, file_name: str, name: str, by: User) -> EvaluationJob:
    """Keeps the file and queues the job; `name` is what the evaluation is called, by default the file's name.

    Raises:
        Refusal: the model cannot be judged by this file.
        Refusal: nobody listens to the queue `train`.
        DiskNearlyFull, ForeignArtifacts: there is no room for the file, or the folder is not this installation's.
    """
    require_in_use(model.project)
    heartbeats.require("train")
    artifacts.require_ours()
    disk_space.require_room()
    _require_usable(model)
    file_name = get_valid_filename(Path(file_name).name[-100:] or "rows")
    name = (name or evaluation.name_of(file_name))[: evaluation.LONGEST_NAME]
    with transaction.atomic():
        job = EvaluationJob.objects.create(reward_model=model, requested_by=by, name=name, file_name=file_name)
        audit.record("evaluation.requested", f"model version {model.version}", project=model.project, file=file_name)
    # After the row is there: the sweep removes folders without one.
    with ExitStack() as undone:
        undone.callback(_remove, job)
        _keep(file, job)
        undone.pop_all()
    messages.send("rewards.tasks.evaluate", [job.pk])
    return job


def _require_usable(model: RewardModel) -> None:
    if model.is_erased():
        text = _("The files of version %(version)s were erased, because it learnt from erased texts.")
        raise Refusal(text % {"version": model.version}, code="model_erased")
    if EvaluationJob.objects.active().filter(reward_model__project=model.project_id).count() >= MOST_WAITING:
        text = _("%(number)s evaluations are under way or waiting. Wait for them, or remove some.")
        raise Refusal(text % {"number": MOST_WAITING}, code="too_many_jobs")


def _keep(file: IO[bytes], job: EvaluationJob) -> None:
    job.directory().mkdir(parents=True)
    with (job.directory() / job.file_name).open("xb") as kept:
        shutil.copyfileobj(file, kept, _CHUNK)
        if not kept.tell():
            raise Refusal(_("The file is empty."), code="empty_file", status=400)


@transaction.atomic
def remove(job: EvaluationJob) -> None:
    """Deletes a job; the worker of one that is under way notices at the next heartbeat. An evaluation stays."""
    model = job.reward_model
    audit.record("evaluation.removed", f"model version {model.version}", project=model.project, file=job.file_name)
    transaction.on_commit(partial(shutil.rmtree, job.directory(), ignore_errors=True))
    job.delete()


def _remove(job: EvaluationJob) -> None:
    shutil.rmtree(job.directory(), ignore_errors=True)
    EvaluationJob.objects.filter(pk=job.pk).delete()


# The worker's side -----------------------------------------------------------------------------------------


def work(job_id: int) -> None:
    """Measures the model of a queued job; does nothing if another worker has the job, or somebody removed it."""
    try:
        fitness.require_artifacts()
    except fitness.Unfit:
        heartbeats.hand_on("rewards.tasks.evaluate", [job_id])
        return
    job = _claim(job_id, now=database_now())
    if job is None:
        return
    try:
        with fitness.blamed(["train"]):
            file, folder = _file_of(job), _folder(job)
            folder.mkdir(exist_ok=True)
            metrics = evaluation.measured(job.reward_model, str(file), folder=folder, beat=partial(_beat, job))
        _finish(job, metrics)
    except _LostJob:
        return
    except _PutDown:
        _owned(job).update(state=EvaluationJob.State.QUEUED, heartbeat_at=None)
        return
    except fitness.Unfit:
        _owned(job).update(state=EvaluationJob.State.QUEUED, heartbeat_at=None)
        heartbeats.hand_on("rewards.tasks.evaluate", [job_id])
        return
    except Refusal as refused:
        _fail(job, str(refused))
    except Exception as error:
        _fail(job, f"{type(error).__name__}: {error}")
        raise
    shutil.rmtree(job.directory(), ignore_errors=True)


def _claim(job_id: int, *, now: datetime) -> EvaluationJob | None:
    # One conditional UPDATE decides; the attempt that it counts up fences off the writes of every earlier worker.
    taken = EvaluationJob.objects.filter(pk=job_id, state=EvaluationJob.State.QUEUED).update(
        state=EvaluationJob.State.WORKING, attempt=F("attempt") + 1, heartbeat_at=now, error=""
    )
    jobs = EvaluationJob.objects.select_related("reward_model__project", "reward_model__run__snapshot")
    return jobs.get(pk=job_id) if taken else None


def _file_of(job: EvaluationJob) -> Path:
    file = job.directory() / job.file_name
    if not file.is_file():
        if job.attempt < settings.RUN_ATTEMPTS:
            raise _PutDown
        raise Refusal(f"{job.file_name} did not arrive. Send it again.", code="evaluation_failed")
    return file


def _folder(job: EvaluationJob) -> Path:
    return job.directory() / f"attempt-{job.attempt}"


def _owned(job: EvaluationJob) -> QuerySet[EvaluationJob]:
    return EvaluationJob.objects.filter(pk=job.pk, attempt=job.attempt, state=EvaluationJob.State.WORKING)


@outlasting_outages
def _beat(job: EvaluationJob) -> None:
    if heartbeats.stopping.is_set():
        raise _PutDown
    newest = (events_in(_folder(job)) or [{}])[-1]
    if not _owned(job).update(heartbeat_at=database_now(), progress=newest):
        raise _LostJob


@outlasting_outages
@transaction.atomic
def _finish(job: EvaluationJob, metrics: dict[str, Any]) -> None:
    if not _owned(job).update(state=EvaluationJob.State.DONE, finished_at=database_now()):
        raise _LostJob
    row = evaluation.record(job.reward_model, metrics, name=job.name)
    EvaluationJob.objects.filter(pk=job.pk).update(evaluation=row)


@outlasting_outages
def _fail(job: EvaluationJob, error: str) -> None:
    error = without_places(error)[:10_000]
    _owned(job).update(state=EvaluationJob.State.FAILED, error=error, finished_at=database_now())


def recover_lost(*, now: datetime) -> int:
    """Requeues the jobs of silent workers, or fails them after the last attempt, and sends forgotten ones again.

    Returns the number of jobs that were sent.
    """
    deadline = now - timedelta(seconds=settings.RUN_LOST_AFTER_SECONDS)
    lost = EvaluationJob.objects.filter(state=EvaluationJob.State.WORKING, heartbeat_at__lt=deadline)
    lost.filter(attempt__gte=settings.RUN_ATTEMPTS).update(
        state=EvaluationJob.State.FAILED,
        error=f"The worker disappeared in each of {settings.RUN_ATTEMPTS} attempts. Check its log and its memory.",
        finished_at=now,
    )
    lost.update(state=EvaluationJob.State.QUEUED)
    queued = EvaluationJob.objects.filter(state=EvaluationJob.State.QUEUED)
    forgotten = queued.annotate(sent_at=Coalesce("heartbeat_at", "created_at")).filter(sent_at__lt=deadline)
    if forgotten.exists() and heartbeats.waiting("train"):
        # Its message may be waiting behind a long run: another one every minute would help nobody.
        forgotten = forgotten.filter(sent_at__lt=now - SURELY_FORGOTTEN_AFTER)
    resent = list(forgotten.values_list("pk", flat=True))
    queued.filter(pk__in=resent).update(heartbeat_at=now)
    for job in resent:
        messages.send("rewards.tasks.evaluate", [job])
    return len(resent)
