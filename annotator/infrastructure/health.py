"""Says whether everything answers, within two seconds even where nothing does.

Strangers learn that much. Addresses, folders and the words of errors are for the log and for administrators.
"""

import logging
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import redis
from django.conf import settings
from django.contrib.staticfiles.storage import ManifestFilesMixin, staticfiles_storage
from whitenoise.storage import CompressedManifestStaticFilesStorage

from annotator.infrastructure.background import fitness, heartbeats
from annotator.infrastructure.background.heartbeats import QueueHealth, Worker
from annotator.infrastructure.storage import artifacts, disk_space, store

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Health:
    """What answers and what does not.

    `problems` are for anybody, `details` for administrators. `failures` counts rows of BackgroundFailure.
    """

    database: bool
    redis: bool
    workers: list[Worker]
    failures: int
    shortages: list[disk_space.Shortage]
    foreign_artifacts: str = ""
    migrated: bool = True
    static_files: bool = True
    details: list[str] = field(default_factory=list)

    @property
    def queues(self) -> dict[str, QueueHealth]:
        return heartbeats.by_queue(self.workers) if self.redis else {}

    @property
    def status(self) -> str:
        """One of ready, degraded and unavailable; a load balancer sends people to another host if it is unavailable.

        `degraded` means that people can work here and somebody should look.
        """
        answers = self.database and self.redis
        if not answers or not self.migrated or not self.static_files or self.foreign_artifacts:
            return "unavailable"
        return "degraded" if self.shortages or any(queue.unfit for queue in self.queues.values()) else "ready"

    @property
    def problems(self) -> list[str]:
        states = {
            "The database does not answer.": not self.database,
            "The database is older than the code: `prepare` has not run.": not self.migrated,
            "Redis does not answer.": not self.redis,
            "The disk is nearly full.": self.shortages,
            "The web does not see the installation's artifacts.": self.foreign_artifacts,
            "The web has no static files: `prepare` has not run on this host.": not self.static_files,
        }
        silent = [text for text, applies in states.items() if applies]
        unfit = sorted({(name, fault) for name, queue in self.queues.items() for fault in queue.unfit})
        return silent + [heartbeats.idle_in_words(name, fault) for name, fault in unfit]

    def as_json(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "database": self.database,
            "redis": self.redis,
            "queues": {name: asdict(queue) for name, queue in self.queues.items()},
            "disk": not self.shortages,
            "artifacts": not self.foreign_artifacts,
            "migrated": self.migrated,
            "static_files": self.static_files,
            "failures": self.failures,
            "error": " ".join(self.problems),
        }


def readiness() -> Health:
    """Asks PostgreSQL, Redis, the disk and this process's own files how they are, and logs what is wrong."""
    details: list[str] = []
    database, state = True, fitness.DatabaseState(None, 0, migrated=True)
    try:
        state = fitness.database_state()
    except psycopg.Error as down:
        database = False
        details.append(f"PostgreSQL: {down}".strip())
    try:
        workers, answers = heartbeats.workers(), True
    except redis.RedisError as down:
        workers, answers = [], False
        details.append(f"Redis: {down}")
    shortages = disk_space.shortages()
    foreign = artifacts.problem(state.artifacts) if database and state.migrated else ""
    uncollected = missing()
    details += [f"{shortage} ({shortage.path})" for shortage in shortages] + ([foreign] if foreign else [])
    details += [f"Static files that `prepare` has not collected: {', '.join(uncollected[:3])}"] if uncollected else []
    health = Health(
        database=database,
        redis=answers,
        workers=workers,
        failures=state.failures,
        shortages=shortages,
        foreign_artifacts=foreign,
        migrated=state.migrated,
        static_files=not uncollected,
        details=details,
    )
    if details or health.problems:
        _log.warning("health: %s", "; ".join(details or health.problems))
    return health


def report_at_start() -> None:
    """Logs whether the web sees the installation's artifacts.

    It opens none of Django's connections: the web is forked afterwards, and two processes must not share one. For the
    same reason it asks no object store.
    """
    if store.is_remote():
        return
    try:
        state = fitness.database_state()
    except psycopg.Error as down:
        _log.warning("PostgreSQL does not answer yet: %s", down)
    else:
        if wrong := artifacts.problem(state.artifacts):
            _log.error("%s (%s)", wrong, settings.ARTIFACTS)


class ModuleStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # the package is untyped
    """Rewrites `import ... from "./name.js"` to hashed names, so that an open page never mixes old and new modules."""

    support_js_module_import_aggregation = True
    # Our own scripts only: some packages ship modules whose imports lead nowhere.
    _js_module_import_aggregation_patterns = (
        "js/*.js",
        CompressedManifestStaticFilesStorage._js_module_import_aggregation_patterns[1],
    )


def missing() -> list[str]:
    """Returns our files under `static` that pages cannot name here, because `prepare` has not collected them.

    Without it, or with those of an earlier version, every page fails on this host. None where names have no hashes.
    """
    if not isinstance(staticfiles_storage, ManifestFilesMixin):
        return []
    return [name for name in _ours() if name not in staticfiles_storage.hashed_files]


@cache
def _ours() -> list[str]:
    folders = [Path(folder) for folder in settings.STATICFILES_DIRS]
    return sorted(str(path.relative_to(folder)) for folder in folders for path in folder.rglob("*") if path.is_file())
