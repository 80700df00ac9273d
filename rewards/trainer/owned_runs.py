"""Writes to a run's row while this worker owns the attempt, and what ends its work on it early."""

from typing import Any

from annotator.infrastructure import jobs
from annotator.infrastructure.db.retries import outlasting_outages
from annotator.infrastructure.storage.hidden_paths import value_without_places
from rewards.models import ACTIVE_STATES, RunState, TrainingRun


class LostRun(Exception):
    """Another attempt owns the run now, or somebody cancelled it: this worker has to stop working on it."""


class TrainerKilled(jobs.Postponed):
    """Something other than this worker killed the trainer: the run may go on from its last checkpoint."""


@outlasting_outages
def write(run: TrainingRun, **fields: Any) -> None:
    """Writes to the row if this attempt still owns it; the texts that people read name no folder of this machine.

    Raises:
        LostRun: another attempt owns the run, or it is no longer active.
    """
    fields |= {name: value_without_places(fields[name]) for name in ("log", "progress", "error") if name in fields}
    owned = TrainingRun.objects.filter(pk=run.pk, attempt=run.attempt, state__in=ACTIVE_STATES)
    # A queued run was put back by `recover_lost`: its attempt is still the same, but the worker counts as lost.
    if not owned.exclude(state=RunState.QUEUED).update(**fields):
        raise LostRun(f"attempt {run.attempt} of run {run.pk} has lost it")
    for name, value in fields.items():
        setattr(run, name, value)
