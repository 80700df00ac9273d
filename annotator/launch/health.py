"""Says whether everything answers, within two seconds even where nothing does.

Strangers learn that much. Addresses, folders and the words of errors are for the log and for administrators.
"""

import logging
from dataclasses import asdict, dataclass, field
from typing import Any
from uuid import UUID

import psycopg
import redis
from django.conf import settings
from django.db import connection

from annotator.background import heartbeats
from annotator.background.heartbeats import QueueHealth
from annotator.storage import artifacts, disk_space

_STATE = """
SELECT (SELECT artifacts_id FROM annotator_installation), (SELECT count(*) FROM annotator_backgroundfailure)
"""
CONNECT_SECONDS = 2
"""The shortest timeout that PostgreSQL's client library keeps to."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Health:
    """What answers and what does not.

    `problems` are for anybody, `details` for administrators. `failures` counts rows of BackgroundFailure.
    """

    database: bool
    redis: bool
    queues: dict[str, QueueHealth]
    failures: int
    shortages: list[disk_space.Shortage]
    foreign_artifacts: str = ""
    details: list[str] = field(default_factory=list)

    @property
    def status(self) -> str:
        """One of ready, degraded and unavailable; `degraded` means that people can work and somebody should look."""
        if not self.database or not self.redis:
            return "unavailable"
        return "degraded" if self.shortages or self.foreign_artifacts else "ready"

    @property
    def problems(self) -> list[str]:
        states = {
            "The database does not answer.": not self.database,
            "Redis does not answer.": not self.redis,
            "The disk is nearly full.": self.shortages,
            "The web does not see the installation's artifacts.": self.foreign_artifacts,
        }
        return [text for text, applies in states.items() if applies]

    def as_json(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "database": self.database,
            "redis": self.redis,
            "queues": {name: asdict(queue) for name, queue in self.queues.items()},
            "disk": not self.shortages,
            "artifacts": not self.foreign_artifacts,
            "failures": self.failures,
            "error": " ".join(self.problems),
        }


def readiness() -> Health:
    """Asks PostgreSQL, Redis and the disk how they are, and logs what is wrong."""
    details: list[str] = []
    database, known, failures = True, None, 0
    try:
        known, failures = _installation_state()
    except psycopg.Error as down:
        database = False
        details.append(f"PostgreSQL: {down}".strip())
    try:
        queues, answers = heartbeats.listening(), True
    except redis.RedisError as down:
        queues, answers = {}, False
        details.append(f"Redis: {down}")
    shortages, foreign = disk_space.shortages(), artifacts.problem(known) if database else ""
    details += [f"{shortage} ({shortage.path})" for shortage in shortages] + ([foreign] if foreign else [])
    if details:
        _log.warning("health: %s", "; ".join(details))
    return Health(database, answers, queues, failures, shortages, foreign, details)


def report_at_start() -> None:
    """Logs whether the web sees the installation's artifacts.

    It opens none of Django's connections: the web is forked afterwards, and two processes must not share one.
    """
    try:
        known, _ = _installation_state()
    except psycopg.Error as down:
        _log.warning("PostgreSQL does not answer yet: %s", down)
    else:
        if wrong := artifacts.problem(known):
            _log.error("%s (%s)", wrong, settings.ARTIFACTS)


def _installation_state() -> tuple[UUID | None, int]:
    """Asks the database for the id of the artifacts and the number of failures, over a connection of its own.

    Waiting for a connection from the pool takes longer than anybody waits for an answer about health, and for ever
    where PostgreSQL has stopped with the connection open.
    """
    parameters = connection.get_connection_params() | {"connect_timeout": CONNECT_SECONDS, "autocommit": True}
    with psycopg.connect(**parameters) as server:
        # A lock on either table would hold the answer back as well.
        server.execute("SET statement_timeout = 1000")
        row = server.execute(_STATE).fetchone()
    assert row is not None
    return row[0], row[1]
