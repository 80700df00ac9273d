"""Starts policy runs. From then on their life is that of every run (rewards/runs/runs.py)."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from annotator.infrastructure.background import heartbeats
from annotator.infrastructure.refusals import Refusal
from annotator.models import Project, User
from annotator.reading.in_use import require_in_use
from rewards import snapshots
from rewards.models import Policy, RunKind, Snapshot, TrainingRun
from rewards.reasons import Reason
from rewards.runs import repeated_runs, runs
from rewards.runs.policy_settings import check_config
from rewards.runs.repeated_runs import NothingNew

CODE = ("aligning",)
"""The part of the learning core that aligns, besides its modules."""


def request(
    project: Project,
    *,
    reason: Reason,
    config: Mapping[str, Any],
    snapshot: Snapshot | None = None,
    by: User | None = None,
) -> TrainingRun:
    """Queues a policy run and sends it to the workers; without a snapshot it takes one of the labels in force.

    Raises:
        Refusal: nobody listens to the queue `train`.
        UnusableConfig, Refusal, DiskNearlyFull: the run cannot be
            started.
    """
    require_in_use(project)
    check_config(dict(config))
    heartbeats.require("train")
    if snapshot is None:
        snapshots.require_answers(project)
    elif snapshot.is_marked():
        raise Refusal(
            _("Tasks of this snapshot were redacted or deleted since it was taken. Start from a new snapshot."),
            code="snapshot_unusable",
        )
    run = TrainingRun(
        project=project,
        kind=RunKind.POLICY,
        snapshot=snapshot,
        reason=reason,
        requested_by=by,
        config=dict(config),
    )
    return runs.queue(run, kind=RunKind.POLICY.value, config=dict(config))


def code_version() -> str:
    return repeated_runs.code_version(*CODE)


def refuse_repetition(run: TrainingRun, snapshot: Snapshot) -> None:
    """Refuses a run that would only repeat another one whose policy was judged.

    Raises:
        NothingNew: the same code has made a policy of the same snapshot with the same settings.
    """
    alike = Policy.objects.filter(
        project=run.project,
        run__config_hash=run.config_hash,
        run__seed=run.seed,
        run__code_version=code_version(),
        run__snapshot=snapshot,
        run__snapshot__marked_at=None,
        judge__isnull=False,
    )
    version = alike.order_by("-version").values_list("version", flat=True).first()
    if version is not None:
        raise NothingNew(
            f"Nothing has changed since policy {version}, which learnt from the same labels with the same settings. "
            "Change the settings (another seed is enough) or label more."
        )
