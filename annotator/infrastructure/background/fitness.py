"""Says whether this process can do the installation's work, so that a worker which cannot takes none.

A worker that does not see the installation's artifacts, its database, or the GPU that its queue promises would fail
every job that it took, and take every job because it is always free. So it stops consuming (heartbeats.py), and every
job asks here before it begins, and again when it fails: the work of an unfit worker goes back to its queue.
"""

import logging
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from uuid import UUID

import psycopg
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.loader import MigrationLoader
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy
from psycopg.errors import UndefinedTable

from annotator.infrastructure.storage import artifacts

CONNECT_SECONDS = 2
"""The shortest timeout that PostgreSQL's client library keeps to."""
GPU_SECONDS = 60
_STATE = """
SELECT (SELECT artifacts_id FROM annotator_installation), (SELECT count(*) FROM annotator_backgroundfailure),
    ARRAY(SELECT ARRAY[app, name] FROM django_migrations)
"""
_FIND_GPU = "import sys, torch; sys.exit(not torch.cuda.is_available())"
_log = logging.getLogger(__name__)


class UnfitReason(StrEnum):
    """Why a worker cannot work. Heartbeats carry it, and pages say it in words."""

    DATABASE = "database"
    MIGRATIONS = "migrations"
    ARTIFACTS = "artifacts"
    GPU = "gpu"


WORDS: Mapping[UnfitReason, str | Promise] = {
    UnfitReason.DATABASE: gettext_lazy("it does not reach the database"),
    UnfitReason.MIGRATIONS: gettext_lazy("the database is older than its code"),
    UnfitReason.ARTIFACTS: gettext_lazy("it does not see the installation's artifacts"),
    UnfitReason.GPU: gettext_lazy("it finds no GPU, although GPU_QUEUES promises one"),
}
"""What follows "a worker is running, but takes no work:"."""


class Unfit(Exception):
    """This worker cannot do the work. The work has not failed: it goes back, and another worker takes it."""

    def __init__(self, fault: UnfitReason) -> None:
        super().__init__(f"A worker could not do it: {WORDS[fault]}. It waits for another worker.")
        self.fault = fault


@dataclass(frozen=True)
class DatabaseState:
    """What the database says of the installation: its artifacts' id, failing periodic tasks, and if it is migrated."""

    artifacts: UUID | None
    failures: int
    migrated: bool


def database_state() -> DatabaseState:
    """Asks the database over a connection of its own. Raises psycopg.Error if it does not answer.

    Waiting for a connection from the pool takes longer than anybody waits for an answer about health, and for ever
    where PostgreSQL has stopped with the connection open.
    """
    parameters = connection.get_connection_params() | {"connect_timeout": CONNECT_SECONDS, "autocommit": True}
    with psycopg.connect(**parameters) as server:
        # A lock on a table would hold the answer back as well.
        server.execute("SET statement_timeout = 1000")
        try:
            row = server.execute(_STATE).fetchone()
        except UndefinedTable:
            return DatabaseState(None, 0, migrated=False)
    assert row is not None
    return DatabaseState(row[0], row[1], migrated=_newest_migrations() <= {(app, name) for app, name in row[2]})


@cache
def _newest_migrations() -> frozenset[tuple[str, str]]:
    return frozenset(MigrationLoader(None).graph.leaf_nodes())


# A worker --------------------------------------------------------------------------------------------------


def fault_of(queues: Collection[str]) -> UnfitReason | None:
    """Looks at everything that a worker of these queues needs; returns what is missing first."""
    try:
        state = database_state()
    except psycopg.Error as down:
        _log.warning("PostgreSQL: %s", down)
        return UnfitReason.DATABASE
    if not state.migrated:
        return UnfitReason.MIGRATIONS
    if wrong := artifacts.problem(state.artifacts):
        _log.warning("%s (%s)", wrong, settings.ARTIFACTS_STORE or settings.ARTIFACTS)
        return UnfitReason.ARTIFACTS
    return None if queues_have_gpu(queues) else UnfitReason.GPU


def queues_have_gpu(queues: Collection[str]) -> bool:
    """Returns whether a GPU is there if one of the queues promises it.

    Another process looks, as torch takes seconds and memory, and must not hold the GPU in a worker that trains nothing.
    """
    if not settings.GPU_QUEUES.intersection(queues):
        return True
    try:
        return subprocess.run([sys.executable, "-c", _FIND_GPU], timeout=GPU_SECONDS, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


# A job -----------------------------------------------------------------------------------------------------


def require_artifacts() -> None:
    """Raises Unfit if this process does not see the installation's artifacts; a job asks before it is claimed."""
    if artifacts.problem(artifacts.known_id()):
        raise Unfit(UnfitReason.ARTIFACTS)


@contextmanager
def blamed(queues: Collection[str] = ()) -> Iterator[None]:
    """Turns the failure of work into Unfit where the cause is this worker, not the work.

    The loss of the database stays what it is: jobs have an answer to that.
    """
    try:
        yield
    except (DatabaseError, InterfaceError, Unfit):
        raise
    except Exception as error:
        if artifacts.problem(artifacts.known_id()):
            raise Unfit(UnfitReason.ARTIFACTS) from error
        if not queues_have_gpu(queues):
            raise Unfit(UnfitReason.GPU) from error
        raise
