"""Has the object store follow a run, so that another machine can go on from its last checkpoint."""

import logging
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet

from annotator.infrastructure import jobs
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.storage import store, working_copies
from rewards.models import WORKING_STATES, TrainingRun
from rewards.trainer import owned_runs

CHECKPOINT = store.OF_WORK[0]
_log = logging.getLogger(__name__)


@contextmanager
def alive(run: TrainingRun) -> Iterator[None]:
    """Has the run's row say that its worker is alive, also while files come or go."""
    with jobs.beating(lambda: _ours(run).update(heartbeat_at=database_now())):
        yield


def _ours(run: TrainingRun) -> QuerySet[TrainingRun]:
    return TrainingRun.objects.filter(pk=run.pk, attempt=run.attempt, state__in=WORKING_STATES)


def _require_ours(run: TrainingRun) -> None:
    if not _ours(run).select_for_update().exists():
        raise owned_runs.LostRun(f"attempt {run.attempt} of run {run.pk} has lost it")


def brought(run: TrainingRun) -> Path:
    """Returns the run's folder with what earlier attempts have left on any host; a newer checkpoint here stays."""
    is_newer = store.is_newer_here(run.directory() / CHECKPOINT)
    return store.bring(run.directory(), leave=lambda name: is_newer and name == CHECKPOINT)


def keep(run: TrainingRun) -> None:
    """Puts what the run has made into the object store, if there is one. Raises StoreAway and LostRun."""
    store.put(run.directory(), leave=store.is_of_work, require_ours=partial(_require_ours, run))


@contextmanager
def mirrored(run: TrainingRun) -> Iterator[None]:
    """Stores each new checkpoint while the block runs, from a thread, and keeps the copies that the run reads."""
    if not store.is_remote():
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_follow, args=(run, over), name="checkpoints", daemon=True)
    snapshot = [run.snapshot.directory()] if run.snapshot else []
    with working_copies.using(run.directory(), run.directory() / CHECKPOINT, *snapshot):
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def _follow(run: TrainingRun, over: threading.Event) -> None:
    stored, is_last = None, False
    try:
        while not is_last:
            # Once more at the end, for the checkpoint that was written last.
            is_last = over.wait(settings.RUN_HEARTBEAT_SECONDS)
            newest = _newest(run.directory() / CHECKPOINT)
            if newest is None or newest == stored:
                continue
            try:
                if _put(run, newest):
                    stored = newest
            except Exception as error:  # noqa: BLE001  the store or the database is away: the next look tries again
                _log.warning("a checkpoint cannot be stored now: %s", error)
                connection.close()
    finally:
        connection.close()


def _newest(checkpoint: Path) -> tuple[int, int] | None:
    try:
        about = checkpoint.stat()
    except FileNotFoundError:
        return None
    return about.st_ino, about.st_mtime_ns


def _put(run: TrainingRun, number: tuple[int, int]) -> bool:
    """Stores the checkpoint, unless the trainer replaces it meanwhile: links to its files stay what they are."""
    checkpoint, linked = run.directory() / CHECKPOINT, run.directory() / ".checkpoint-linked"
    shutil.rmtree(linked, ignore_errors=True)
    try:
        shutil.copytree(checkpoint, linked, copy_function=os.link)
        if is_whole := _newest(checkpoint) == number:
            store.put(checkpoint, source=linked, require_ours=partial(_require_ours, run))
        return is_whole
    finally:
        shutil.rmtree(linked, ignore_errors=True)
