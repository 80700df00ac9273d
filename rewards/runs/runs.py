"""Manages the life of a training run: requested, claimed by one worker, and recovered when its worker is lost.

The row is the truth: Celery carries ids, and a message too many or too few changes nothing.
"""

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _

from annotator.infrastructure import audit
from annotator.infrastructure.background import failures, fitness, heartbeats, messages
from annotator.infrastructure.db.retries import outlasting_outages
from annotator.infrastructure.jobs import Postponed
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.storage import disk_space
from annotator.infrastructure.storage.hidden_paths import without_places
from annotator.models import Project, User
from annotator.reading.in_use import require_in_use
from rewards import announcements, snapshots
from rewards.learning.config import config_hash
from rewards.models import ACTIVE_STATES, RunKind, RunState, TrainingRun
from rewards.reasons import Reason, coded, in_english
from rewards.runs import policy_settings, run_settings
from rewards.runs.new_labels import news_since
from rewards.runs.repeated_runs import NothingNew
from rewards.runs.run_settings import UnusableConfig, check_config
from rewards.trainer.owned_runs import TrainerKilled

_log = logging.getLogger(__name__)
SURELY_FORGOTTEN_AFTER = timedelta(hours=1)
"""A queued run without a sign for this long is sent again, even if messages wait: they may belong to other runs."""


def request(project: Project, *, reason: Reason, by: User | None = None, config: Mapping[str, Any] = {}) -> TrainingRun:
    """Queues a run and sends it to the workers.

    Raises:
        Refusal: nobody listens to the queue `train`.
        UnusableConfig, Refusal, DiskNearlyFull: the run cannot be started.
    """
    require_in_use(project)
    settled = run_settings.settled(project, dict(config))
    check_config(settled)
    run_settings.require_known_attributes(project, settled)
    heartbeats.require("train")
    snapshots.require_answers(project)
    return queue(TrainingRun(project=project, reason=reason, requested_by=by, config=settled), config=dict(config))


def why_not_now(project: Project) -> str:
    """Returns why a run of the project would be refused now whatever its settings; empty if it would not."""
    try:
        require_in_use(project)
        active = TrainingRun.objects.active().filter(project=project).first()
        if active:
            return _why_not_now(active)
        heartbeats.require("train")
        snapshots.require_answers(project)
        disk_space.require_room()
    except Refusal as refused:
        return str(refused)
    return ""


def retry(run: TrainingRun, *, by: User) -> TrainingRun:
    """Queues a run like one that failed or was cancelled: with its settings, and with its snapshot if that may be used.

    Raises:
        Refusal: the run has neither failed nor been cancelled.
        Refusal, UnusableConfig, DiskNearlyFull: the new run cannot be started.
    """
    if run.state not in (RunState.FAILED, RunState.CANCELLED):
        raise Refusal(
            _("Run %(run)s is in the state “%(state)s”. Only a failed or cancelled run can be retried.") % _state(run),
            code="not_ended",
        )
    again = TrainingRun(project=run.project, kind=run.kind, requested_by=by, config=run.config)
    again.reason = coded("failed_before" if run.state == RunState.FAILED else "cancelled_before", run=str(run.pk))
    if run.snapshot and not run.snapshot.is_marked():
        again.snapshot = run.snapshot
    elif run.snapshot:
        again.reason = coded("on_new_snapshot", reason=again.reason)
    try:
        return queue(again, retry_of=run.pk)
    except UnusableConfig as unusable:
        text = _("Run %(run)s cannot be repeated with its settings. Start a new run with other settings. %(reason)s")
        raise UnusableConfig(text % {"run": run.pk, "reason": unusable}) from unusable


def queue(run: TrainingRun, **details: audit.JSON) -> TrainingRun:
    """Stores a run of any kind and sends it to the workers; the details go into the audit.

    Raises:
        Refusal, UnusableConfig, DiskNearlyFull: the run cannot be started.
    """
    require_in_use(run.project)
    heartbeats.require("train")
    disk_space.require_room()
    if run.kind == RunKind.POLICY:
        aligning = policy_settings.check_config(run.config)
        run.config_hash, run.seed = policy_settings.identity(aligning), aligning.seed
    else:
        training = check_config(run.config)
        run.config_hash, run.seed = config_hash(training), training.seed
    # The constraint on active runs decides: asked before, two requests at once would both see none.
    try:
        with transaction.atomic():
            run.save(force_insert=True)
            reason = in_english(run.reason)
            audit.record("run.requested", f"run {run.pk}", project=run.project, reason=reason, **details)
    except IntegrityError as twice:
        active = TrainingRun.objects.active().filter(project=run.project).first()
        raise Refusal(_why_not_now(active), code="already_running") from twice
    send(run)
    return run


def _why_not_now(active: TrainingRun | None) -> str:
    if active is None:
        return _("A run is in progress. Wait for it or cancel it.")
    words = {"run": active.pk, "project": active.project}
    if active.waits_for_decision():
        text = _("Run %(run)s of %(project)s is waiting for a decision. Promote or reject its model first.")
        return text % words
    return _("Run %(run)s of %(project)s is in progress. Wait for it or cancel it.") % words


def send(run: TrainingRun) -> None:
    """Sends the run to the train workers once the transaction is committed, so that they find its row."""
    messages.send_on_commit("rewards.tasks.train", [run.pk])


# Reasons to retrain ----------------------------------------------------------------------------------------


def start_due(*, now: datetime) -> list[TrainingRun]:
    """Starts a run in every project whose policy asks for one; while no worker listens, none is started."""
    with_policy = Project.objects.in_use().filter(Q(retrain_after_labels__gt=0) | Q(retrain_after_hours__gt=0))
    idle = with_policy.exclude(training_runs__state__in=ACTIVE_STATES).distinct()
    started: list[TrainingRun] = []

    def start_if_due(project: Project) -> int:
        reason = due(project, now=now)
        if not reason or not heartbeats.listening()["train"].alive:
            return 0
        # A refusal is no failure of the background work: the next time there may be more labels, or more room.
        try:
            started.append(request(project, reason=reason))
        except Refusal as refused:
            _log.warning("no run of %s, although %s: %s", project.slug, in_english(reason), refused)
            return 0
        return 1

    failures.each_project("start_due_runs", idle, start_if_due)
    return started


def due(project: Project, *, now: datetime) -> Reason:
    """Returns why the project's policy asks for a run now; empty if it does not, or during the rest after a run.

    New labels and preferences are counted from the last run that was started, whatever became of it, so that a run
    that fails is not started again and again.
    """
    last = TrainingRun.objects.of_rewards().filter(project=project).order_by("-pk").first()
    if last and now < (last.finished_at or last.created_at) + timedelta(minutes=project.retrain_cooldown_minutes):
        return ""
    news = news_since(last, project)
    if project.retrain_after_labels and news.total >= project.retrain_after_labels:
        return coded("enough_news", news=news.reason(), number=project.retrain_after_labels)
    age = now - last.created_at if last else None
    hours = project.retrain_after_hours
    if hours and news.total and age is not None and age >= timedelta(hours=hours):
        return coded("long_ago", hours=round(age.total_seconds() / 3600), news=news.reason())
    return ""


# One worker at a time --------------------------------------------------------------------------------------


def ahead_of(run: TrainingRun) -> TrainingRun | None:
    """Returns the run of another project that a queued run waits for: the one that has worked longest."""
    if run.state != RunState.QUEUED:
        return None
    return TrainingRun.objects.working().exclude(pk=run.pk).order_by("started_at").first()


def hand_on(run_id: int, why: fitness.Unfit) -> None:
    """Sends the message of a run that this worker is unfit for to the next one; the run's page says why it waits."""
    TrainingRun.objects.filter(pk=run_id, state=RunState.QUEUED).update(error=str(why))
    heartbeats.hand_on("rewards.tasks.train", [run_id])


def claim(run_id: int, *, worker: str, now: datetime) -> TrainingRun | None:
    """Takes a queued run for this worker; None if another worker has it, or it has been cancelled."""
    # One conditional UPDATE decides: of two workers with the same message one changes the row. The attempt that it
    # counts up fences off the writes of every earlier worker.
    taken = TrainingRun.objects.filter(pk=run_id, state=RunState.QUEUED).update(
        state=RunState.SNAPSHOTTING,
        attempt=F("attempt") + 1,
        worker=worker,
        heartbeat_at=now,
        started_at=now,
        error="",
    )
    return TrainingRun.objects.select_related("project", "snapshot").get(pk=run_id) if taken else None


@outlasting_outages
@transaction.atomic
def fail(run: TrainingRun, error: str, *, now: datetime) -> None:
    """Ends the run with its error, unless another attempt owns it by now."""
    owned = TrainingRun.objects.filter(pk=run.pk, attempt=run.attempt, state__in=ACTIVE_STATES)
    if owned.update(state=RunState.FAILED, error=without_places(error)[:10_000], finished_at=now):
        announcements.run_ended(run, RunState.FAILED)


@outlasting_outages
@transaction.atomic
def drop(run: TrainingRun, why: NothingNew, *, now: datetime) -> None:
    """Cancels a run that would only repeat another one: it has not failed, and nobody needs to look at it."""
    owned = TrainingRun.objects.working().filter(pk=run.pk, attempt=run.attempt)
    if owned.update(state=RunState.CANCELLED, error=str(why), finished_at=now):
        announcements.run_ended(run, RunState.CANCELLED)


@outlasting_outages
def postpone(run: TrainingRun, why: Postponed | fitness.Unfit) -> None:
    """Puts the run back into the queue, so that the next worker goes on from the last checkpoint."""
    owned = TrainingRun.objects.working().filter(pk=run.pk, attempt=run.attempt)
    # A worker that is being stopped must not send the run to itself; `recover_lost` sends it when nobody takes it.
    if owned.update(state=RunState.QUEUED, heartbeat_at=None, error=str(why)) and isinstance(why, TrainerKilled):
        send(run)


def put_back(run: TrainingRun, why: fitness.Unfit) -> None:
    """Puts a run back whose worker turned out to be unfit in the middle of it, and sends it to the next worker."""
    postpone(run, why)
    heartbeats.hand_on("rewards.tasks.train", [run.pk])


@transaction.atomic
def cancel(run: TrainingRun, *, now: datetime) -> None:
    """Ends an active run; its worker notices at the next heartbeat and stops the trainer.

    Raises:
        Refusal: the run has ended already.
    """
    active = TrainingRun.objects.active().filter(pk=run.pk)
    if not active.update(state=RunState.CANCELLED, finished_at=now):
        run.refresh_from_db(fields=["state"])
        raise Refusal(_("Run %(run)s has already ended. Its state is “%(state)s”.") % _state(run), code="not_active")
    announcements.run_ended(run, RunState.CANCELLED)
    audit.record("run.cancelled", f"run {run.pk}", project=run.project)


@transaction.atomic
def reject(run: TrainingRun, *, now: datetime) -> None:
    """Turns down a model that waits for a manager's decision; `promotion.promote` accepts it.

    Raises:
        Refusal: the run does not wait for a decision.
    """
    waiting = TrainingRun.objects.waiting().filter(pk=run.pk)
    if not waiting.update(state=RunState.REJECTED, finished_at=now):
        run.refresh_from_db(fields=["state"])
        raise Refusal(
            _("Run %(run)s is not waiting for a decision. Its state is “%(state)s”.") % _state(run),
            code="nothing_to_decide",
        )
    announcements.run_ended(run, RunState.REJECTED)
    audit.record("run.rejected", f"run {run.pk}", project=run.project)


def recover_lost(*, now: datetime) -> list[TrainingRun]:
    """Requeues runs whose worker has gone silent, or fails them after the last attempt; resends forgotten ones.

    Returns the runs that were sent.
    """
    deadline = now - timedelta(seconds=settings.RUN_LOST_AFTER_SECONDS)
    lost = TrainingRun.objects.working().filter(heartbeat_at__lt=deadline)
    _give_up(lost.filter(attempt__gte=settings.RUN_ATTEMPTS), now=now)
    lost.update(state=RunState.QUEUED, error="The worker disappeared; the run starts again from its last checkpoint.")
    queued = TrainingRun.objects.filter(state=RunState.QUEUED).annotate(sent_at=Coalesce("heartbeat_at", "created_at"))
    forgotten = queued.filter(sent_at__lt=deadline)
    if forgotten.exists() and heartbeats.waiting("train"):
        # Its message may be waiting behind a long run: another one every minute would help nobody.
        forgotten = forgotten.filter(sent_at__lt=now - SURELY_FORGOTTEN_AFTER)
    resent = list(forgotten)
    TrainingRun.objects.filter(pk__in=[run.pk for run in resent], state=RunState.QUEUED).update(heartbeat_at=now)
    for run in resent:
        send(run)
    return resent


@transaction.atomic
def _give_up(lost: QuerySet[TrainingRun], *, now: datetime) -> None:
    given_up = list(lost.select_for_update(of=["self"]).select_related("project"))
    TrainingRun.objects.filter(pk__in=[run.pk for run in given_up]).update(
        state=RunState.FAILED,
        error=f"The worker disappeared in each of {settings.RUN_ATTEMPTS} attempts. Check its log and its memory.",
        finished_at=now,
    )
    for run in given_up:
        announcements.run_ended(run, RunState.FAILED)


def _state(run: TrainingRun) -> dict[str, Any]:
    return {"run": run.pk, "state": run.get_state_display()}
