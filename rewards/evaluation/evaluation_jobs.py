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
from django.db.models.functions import Coalesce
from django.utils.text import get_valid_filename
from django.utils.translation import gettext as _

from annotator.infrastructure import audit, jobs
from annotator.infrastructure.background import fitness, heartbeats, messages
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.db.retries import outlasting_outages
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.storage import artifacts, disk_space, store
from annotator.models import User
from annotator.reading.in_use import require_in_use
from rewards.evaluation import evaluation
from rewards.models import EvaluationJob, RewardModel
from rewards.trainer.trainer_process import events_in

MOST_WAITING = 20
"""The unfinished jobs that a project may have: each holds a file on the disk."""
SURELY_FORGOTTEN_AFTER = timedelta(hours=1)
"""A queued job without a sign for this long is sent again, even if messages wait: they may belong to other jobs."""
_CHUNK = 1 << 20


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
    if model.is_erased():
        text = _("The files of version %(version)s were erased, because it learnt from erased texts.")
        raise Refusal(text % {"version": model.version}, code="model_erased")
    if EvaluationJob.objects.active().filter(reward_model__project=model.project_id).count() >= MOST_WAITING:
        text = _("%(number)s evaluations are under way or waiting. Wait for them, or remove some.")
        raise Refusal(text % {"number": MOST_WAITING}, code="too_many_jobs")
    file_name = get_valid_filename(Path(file_name).name[-100:] or "rows")
    name = (name or evaluation.name_of(file_name))[: evaluation.LONGEST_NAME]
    if store.is_remote():
        # A host with a web server alone has nobody else who removes what a killed process has left.
        here = list((settings.ARTIFACTS / "evaluations").glob("*"))
        active = {str(pk) for pk in EvaluationJob.objects.active().values_list("pk", flat=True)}
        store.discard(*(folder for folder in here if folder.name not in active))
    with transaction.atomic():
        job = EvaluationJob.objects.create(reward_model=model, requested_by=by, name=name, file_name=file_name)
        audit.record("evaluation.requested", f"model version {model.version}", project=model.project, file=file_name)
    # After the row is there: the sweep removes folders without one.
    with ExitStack() as undone:
        undone.callback(_remove, job)
        job.directory().mkdir(parents=True)
        with (job.directory() / job.file_name).open("xb") as kept:
            shutil.copyfileobj(file, kept, _CHUNK)
            if not kept.tell():
                raise Refusal(_("The file is empty."), code="empty_file", status=400)
        store.put(job.directory())
        store.forget_here(job.directory())
        undone.pop_all()
    messages.send("rewards.tasks.evaluate", [job.pk])
    return job


@transaction.atomic
def remove(job: EvaluationJob) -> None:
    """Deletes a job; the worker of one that is under way notices at the next heartbeat. An evaluation stays."""
    model = job.reward_model
    audit.record("evaluation.removed", f"model version {model.version}", project=model.project, file=job.file_name)
    transaction.on_commit(partial(store.discard, job.directory()))
    job.delete()


def _remove(job: EvaluationJob) -> None:
    store.discard(job.directory())
    EvaluationJob.objects.filter(pk=job.pk).delete()


# The worker's side -----------------------------------------------------------------------------------------


def work(job_id: int) -> None:
    """Measures the model of the job whose turn it is. As each job has a message, that one's turn comes as well."""
    try:
        fitness.require_artifacts()
    except fitness.Unfit:
        heartbeats.hand_on("rewards.tasks.evaluate", [job_id])
    else:
        jobs.run_waiting(_EVALUATIONS, most=1)


def _measure(job: EvaluationJob) -> None:
    file, folder = job.directory() / job.file_name, _folder(job)
    with jobs.beating(partial(jobs.beat, job)):
        store.bring(job.directory())
        store.bring(job.reward_model.directory())
        if snapshot := job.reward_model.run.snapshot:
            store.bring(snapshot.directory())
    if not file.is_file():
        if job.tries < jobs.ATTEMPTS:
            raise jobs.FileMissing
        raise Refusal(f"{job.file_name} did not arrive. Send it again.", code="evaluation_failed")
    folder.mkdir(exist_ok=True)
    metrics = evaluation.measured(job.reward_model, str(file), folder=folder, beat=partial(_beat, job))
    _finish(job, metrics)
    _clean(job)


def _clean(job: EvaluationJob) -> None:
    if not EvaluationJob.objects.active().filter(pk=job.pk).exists():  # otherwise another worker reads the file
        store.discard(job.directory())


def _folder(job: EvaluationJob) -> Path:
    return job.directory() / f"attempt-{job.attempt}"


@outlasting_outages
def _beat(job: EvaluationJob) -> None:
    jobs.require_go_on()
    newest = (events_in(_folder(job)) or [{}])[-1]
    jobs.write(job, heartbeat_at=database_now(), progress=newest)


@outlasting_outages
@transaction.atomic
def _finish(job: EvaluationJob, metrics: dict[str, Any]) -> None:
    jobs.finish(job)
    row = evaluation.record(job.reward_model, metrics, name=job.name)
    EvaluationJob.objects.filter(pk=job.pk).update(evaluation=row)


_EVALUATIONS = jobs.JobKind(
    "evaluation jobs",
    jobs=lambda: EvaluationJob.objects.select_related("reward_model__project", "reward_model__run__snapshot"),
    work=_measure,
    lost=f"The worker disappeared in each of {jobs.ATTEMPTS} attempts. Check its log and its memory.",
    clean=_clean,
    project="reward_model__project_id",
    queues=("train",),
    silent_after=timedelta(seconds=settings.RUN_LOST_AFTER_SECONDS),
    hand_on=lambda job: heartbeats.hand_on("rewards.tasks.evaluate", [job.pk]),
)


def recover_lost(*, now: datetime) -> int:
    """Requeues the jobs of silent workers, or fails them after the last attempt, and sends forgotten ones again.

    Returns the number of jobs that were sent.
    """
    jobs.put_back_lost(_EVALUATIONS, now=now)
    deadline = now - timedelta(seconds=settings.RUN_LOST_AFTER_SECONDS)
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
