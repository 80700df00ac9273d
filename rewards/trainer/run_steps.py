"""The steps that every kind of run takes on a worker: it looks for its files, takes a snapshot, and finds the champion.

Writes are fenced by the attempt, and wait while the database restarts.
"""

import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from django.conf import settings

from annotator.infrastructure import jobs
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.db.retries import outlasting_outages
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.stopping import stopping
from annotator.infrastructure.storage import artifacts, disk_space, store
from annotator.models import Project
from rewards import snapshots
from rewards.learning.data import read_tasks
from rewards.models import RewardModel, Snapshot, TrainingRun
from rewards.registry import registry
from rewards.trainer import owned_runs


class ChampionMissing(Refusal):
    """The worker does not see the files of the model that the new one would be judged against."""

    code = "champion_missing"


@contextmanager
def full_disk_named() -> Iterator[None]:
    """Turns the error of a full disk into Refusal."""
    try:
        yield
    except OSError as error:
        if error.errno in disk_space.FULL:
            raise Refusal(
                f"The disk is full. There is no room for files under {settings.ARTIFACTS}.", code="disk_full"
            ) from error
        raise


@outlasting_outages
def check_files(run: TrainingRun) -> None:
    """Checks before hours of training, not after them, that there is room, and that the champion can be used.

    Raises:
        ForeignArtifacts, DiskNearlyFull: the folder is not this installation's, or has no room.
        Postponed, ChampionMissing: the champion's files are not here, and may be on the next worker; or on none.
    """
    artifacts.require_ours()
    disk_space.require_room()
    champion = champion_of(run.project)
    if champion and not (store.bring(champion.directory()) / registry.MANIFEST).is_file():
        text = (
            f"This worker ({socket.gethostname()}) has no files of the champion, version {champion.version}, with "
            "which the new model would be compared. Every worker must see the same artifacts."
        )
        raise jobs.Postponed(text) if run.attempt < settings.RUN_ATTEMPTS else ChampionMissing(text)


@outlasting_outages
def champion_of(project: Project) -> RewardModel | None:
    return RewardModel.objects.filter(project=project, is_champion=True).first()


@outlasting_outages
def new_snapshot(run: TrainingRun, *, refuse_repetition: Callable[[TrainingRun, Snapshot], None]) -> Snapshot:
    """Takes a snapshot for the run, with a heartbeat at each of its steps.

    Raises:
        Refusal, DiskNearlyFull: there is none to be taken.
        NothingNew: `refuse_repetition` refuses it.
        Postponed, LostRun: the run goes on later, or belongs to another attempt.
    """
    with closing(snapshots.steps(run.project, now=database_now())) as steps:
        for step in steps:
            require_go_on()
            owned_runs.write(run, heartbeat_at=database_now(), progress={"event": "snapshot", "tasks": step.tasks})
    assert step.snapshot is not None
    refuse_repetition(run, step.snapshot)
    return step.snapshot


def require_go_on() -> None:
    """Raises Postponed if this worker was asked to stop."""
    if stopping.is_set():
        raise jobs.Postponed("The worker was stopped. The run waits for the next worker.")


def learnt_prompts(model: RewardModel) -> set[str] | None:
    """Returns the prompts that a model has learnt from; None where its snapshot is gone and nobody knows."""
    train = store.bring(model.run.snapshot.directory()) / "train.jsonl" if model.run.snapshot else None
    return {task.prompt_hash for task in read_tasks(train)} if train and train.is_file() else None
