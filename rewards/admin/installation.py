"""What an administrator looks at first: workers, what waits for them in all projects, disks, versions, mail."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from smtplib import SMTPException

import django
import redis
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import connection
from django.utils.translation import gettext as _

from annotator.infrastructure import audit
from annotator.infrastructure.background import fitness, heartbeats
from annotator.infrastructure.background.backlogs import COUNTS, MANY, Backlogs
from annotator.infrastructure.background.heartbeats import QUEUES, Worker
from annotator.infrastructure.db.statements import Statement
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.storage import disk_space
from annotator.models import User
from annotator.version import VERSION

MEGABYTE = 10**6


@dataclass(frozen=True)
class ShownWorker:
    """A worker, its queues, the age of its last heartbeat in seconds, and what it does or lacks."""

    name: str
    queues: str
    age: float
    state: str
    good: bool


@dataclass(frozen=True)
class Installation:
    """`waiting` counts jobs of all projects, `messages` those in Redis; `rooms` are free megabytes by folder."""

    workers: list[ShownWorker]
    backlogs: Backlogs
    waiting: list[tuple[str, str]]
    messages: list[tuple[str, int]]
    rooms: list[tuple[str, int]]
    versions: list[tuple[str, str]]
    mail: str


def installation(workers: Sequence[Worker]) -> Installation:
    """Returns what the opening page shows to administrators; `workers` are those that Redis knows of."""
    rooms = [(room.folder, room.free // MEGABYTE) for room in disk_space.rooms()]
    mail = f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}" if settings.EMAIL_HOST else ""
    kinds = [
        _("imports"),
        _("exports"),
        _("releases"),
        _("snapshots"),
        _("training runs"),
        _("evaluations"),
        _("requests for scores"),
        _("webhook deliveries"),
    ]
    row = _WAITING.row(most=MANY + 1)
    assert row is not None
    parts = len(row) - len(kinds)
    counts = [_("more than %(number)s") % {"number": MANY} if count > MANY else str(count) for count in row[parts:]]
    backlogs, waiting = Backlogs(*row[:parts]), list(zip(kinds, counts, strict=True))
    connection.ensure_connection()
    postgres = str(connection.pg_version)  # type: ignore[attr-defined]
    return Installation(
        [_shown(worker) for worker in workers],
        backlogs,
        waiting,
        _messages(),
        rooms,
        [
            ("Rewardloop", VERSION),
            ("Python", platform.python_version()),
            ("Django", django.get_version()),
            ("PostgreSQL", f"{postgres[:-4]}.{int(postgres[-4:])}"),
            *[(name, _installed(name)) for name in ("celery", "torch", "transformers")],
        ],
        mail,
    )


def _shown(worker: Worker) -> ShownWorker:
    if not worker.alive:
        state = _("silent: it was lost, or its machine was")
    elif worker.unfit:
        state = _("takes no work: %(reason)s") % {"reason": fitness.WORDS[worker.unfit]}
    else:
        state = _("takes work")
    good = worker.alive and not worker.unfit
    return ShownWorker(worker.name, ", ".join(worker.queues), worker.age, state, good)


_WAITING = Statement(f"""
SELECT {COUNTS},
    (SELECT count(*) FROM (SELECT FROM annotator_importjob WHERE state = 'waiting' LIMIT %(most)s) x),
    (SELECT count(*) FROM (SELECT FROM annotator_exportjob WHERE state = 'waiting' LIMIT %(most)s) x),
    (SELECT count(*) FROM (SELECT FROM annotator_release WHERE state = 'waiting' LIMIT %(most)s) x),
    (SELECT count(*) FROM (SELECT FROM rewards_snapshotjob WHERE state = 'queued' LIMIT %(most)s) x),
    (SELECT count(*) FROM (SELECT FROM rewards_trainingrun WHERE state = 'queued' LIMIT %(most)s) x),
    (SELECT count(*) FROM (SELECT FROM rewards_evaluationjob WHERE state = 'queued' LIMIT %(most)s) x),
    (SELECT count(*) FROM (SELECT FROM rewards_scoringjob WHERE state = 'queued' LIMIT %(most)s) x),
    (SELECT count(*) FROM (SELECT FROM annotator_webhookdelivery WHERE state = 'waiting' LIMIT %(most)s) x)
""")


def _messages() -> list[tuple[str, int]]:
    try:
        return [(queue, heartbeats.waiting(queue)) for queue in QUEUES]
    except redis.RedisError:
        return []


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return _("not installed here")


def send_test_mail(user: User) -> None:
    """Sends the administrator a mail, to see whether invitations arrive.

    Raises:
        Refusal: there is no mail server, the account has no address, or the server refused the mail.
    """
    if not settings.EMAIL_HOST:
        raise Refusal(_("This installation sends no mail: EMAIL_URL names no server."), code="no_mail")
    if not user.email:
        raise Refusal(_("Your account has no e-mail address to send to."), code="no_mail")
    text = _("This is a test from %(address)s. Invitations are sent the same way.") % {"address": settings.PUBLIC_URL}
    try:
        EmailMessage(_("Test mail from Rewardloop"), text, to=[user.email]).send()
    except (SMTPException, OSError) as refused:
        error = f"{type(refused).__name__}: {refused}"
        raise Refusal(
            _("The mail server did not take the mail. %(error)s") % {"error": error}, code="no_mail"
        ) from refused
    audit.record("mail.tested", f"account {user.username}")
