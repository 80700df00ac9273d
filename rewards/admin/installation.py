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
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

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
    backlogs, waits = waiting()
    many = _("more than %(number)s") % {"number": MANY}
    connection.ensure_connection()
    postgres = str(connection.pg_version)  # type: ignore[attr-defined]
    return Installation(
        [_shown(worker) for worker in workers],
        backlogs,
        [(str(one.words), many if one.number > MANY else str(one.number)) for one in waits],
        messages(),
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


@dataclass(frozen=True)
class Waiting:
    """Jobs of one kind that wait in all projects, counted up to MANY + 1, and for how many seconds the oldest does."""

    kind: str
    words: Promise
    number: int
    seconds: float


_KINDS = (
    ("imports", gettext_lazy("imports"), "annotator_importjob", "waiting"),
    ("exports", gettext_lazy("exports"), "annotator_exportjob", "waiting"),
    ("releases", gettext_lazy("releases"), "annotator_release", "waiting"),
    ("snapshots", gettext_lazy("snapshots"), "rewards_snapshotjob", "queued"),
    ("runs", gettext_lazy("training runs"), "rewards_trainingrun", "queued"),
    ("evaluations", gettext_lazy("evaluations"), "rewards_evaluationjob", "queued"),
    ("scoring", gettext_lazy("requests for scores"), "rewards_scoringjob", "queued"),
    ("webhooks", gettext_lazy("webhook deliveries"), "annotator_webhookdelivery", "waiting"),
)
_COUNT = """(SELECT json_build_array(count(*), coalesce(extract(epoch FROM now() - min(created_at)), 0)) FROM (
    SELECT created_at FROM {table} WHERE state = '{state}' LIMIT %(most)s) x)"""
_COUNTED = ", ".join(_COUNT.format(table=table, state=state) for _kind, _words, table, state in _KINDS)
_WAITING = Statement(f"SELECT {COUNTS}, {_COUNTED}")


def waiting() -> tuple[Backlogs, list[Waiting]]:
    """Returns what waits for the workers in all projects."""
    row = _WAITING.row(most=MANY + 1)
    assert row is not None
    parts = len(row) - len(_KINDS)
    waits = [Waiting(kind, words, *of) for (kind, words, *_), of in zip(_KINDS, row[parts:], strict=True)]
    return Backlogs(*row[:parts]), waits


def messages() -> list[tuple[str, int]]:
    """Returns how many messages wait in each queue; nothing while Redis is away."""
    try:
        return [(queue, heartbeats.waiting_of_any(queue)) for queue in QUEUES]
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
