"""Has the object store follow a run, so that another machine can go on from its last checkpoint."""

import logging
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection

from annotator.infrastructure.storage import store, working_copies
from annotator.infrastructure.storage.object_store import StoreAway
from rewards.models import TrainingRun

CHECKPOINT = "checkpoint"
LEFTOVERS = (CHECKPOINT, "reference", "rows", "judging")
"""What a run needs only while it is under way. Rows and answers are people's texts, which a repetition writes again."""
_log = logging.getLogger(__name__)


def keep(run: TrainingRun) -> None:
    """Puts what the run has made into the object store, if there is one. Raises StoreAway."""
    store.put(run.directory(), leave=lambda name: name.startswith(".") or name in LEFTOVERS)


@contextmanager
def mirrored(run: TrainingRun) -> Iterator[None]:
    """Stores each new checkpoint while the block runs, from a thread, and keeps the copies that the run reads."""
    if not store.is_remote():
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_follow, args=(run.directory(), over), name="checkpoints", daemon=True)
    places = [run.directory(), run.directory() / CHECKPOINT, *([run.snapshot.directory()] if run.snapshot else [])]
    with working_copies.using(*places):
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def _follow(folder: Path, over: threading.Event) -> None:
    stored: int | None = None
    try:
        while not over.wait(settings.RUN_HEARTBEAT_SECONDS):
            newest = _newest(folder / CHECKPOINT)
            if newest is None or newest == stored:
                continue
            # While the store or the database is away, the next look tries again.
            try:
                if _put(folder, newest):
                    stored = newest
            except (StoreAway, OSError, DatabaseError, InterfaceError) as error:
                _log.warning("a checkpoint cannot be stored now: %s", error)
    finally:
        connection.close()


def _newest(checkpoint: Path) -> int | None:
    try:
        return checkpoint.stat().st_ino
    except FileNotFoundError:
        return None


def _put(folder: Path, number: int) -> bool:
    """Stores the checkpoint, unless the trainer replaces it meanwhile: links to its files stay what they are."""
    linked = folder / ".checkpoint-linked"
    shutil.rmtree(linked, ignore_errors=True)
    try:
        shutil.copytree(folder / CHECKPOINT, linked, copy_function=os.link)
        if is_whole := _newest(folder / CHECKPOINT) == number:
            store.put(folder / CHECKPOINT, source=linked)
        return is_whole
    finally:
        shutil.rmtree(linked, ignore_errors=True)
