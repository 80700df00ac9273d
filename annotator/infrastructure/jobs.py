"""The queues of rows: a worker takes the job whose turn it is, and writes to it only while it is its own.

The row is the truth. Messages carry nothing but the wish that somebody looks, and beat sends one again and again. A
feature says what its jobs are, what a worker does with one, and what an attempt leaves behind (Kind).

A worker holds a session lock of PostgreSQL for its job's kind and project, and one for a place among those that the
installation has for the kind. So a project has one job of a kind at work at a time, jobs of several projects run beside
each other, and a job that says it is at work while the lock of its project is free has lost its worker.

Where the rows say what is left of the work, it can be stopped at any point and repeated, and needs no attempt: such
work goes through `finish_left`, under the same locks.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import F, OuterRef, QuerySet, Subquery

from annotator.infrastructure.background import failures, fitness, heartbeats
from annotator.infrastructure.background.failures import safe_text
from annotator.infrastructure.db import locks
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.stopping import stopping
from annotator.infrastructure.storage import disk_space, store
from annotator.infrastructure.storage.hidden_paths import without_places
from annotator.infrastructure.storage.object_store import StoreAway
from annotator.models import Project
from annotator.models.jobs import Job

ATTEMPTS = 3
LOST = f"The worker or the database was lost in each of {ATTEMPTS} attempts. Check their logs and their memory"
SILENT_AFTER = timedelta(minutes=10)
"""A worker says every few seconds that it is alive. One without a sign for so long loses its job, and its locks."""
LONGEST_ERROR = 10_000
J = TypeVar("J", bound=Job)
_of_this_process = threading.BoundedSemaphore(settings.JOBS_A_WORKER)


class Ended(Exception):
    """Somebody cancelled the job, another worker has it, or it is gone with its project."""


class Postponed(Exception):
    """The job or run goes on later: its worker was asked to stop, or lacks what it takes."""


class FileMissing(Postponed):
    """The job's file is not where this worker looks for it. It may be on its way; this attempt counts."""


def _nothing(_: Any) -> None:
    return


@dataclass(frozen=True)
class JobKind(Generic[J]):
    """What the jobs of one kind are, and what is done with them.

    `jobs` returns the rows with what the work reads. `work` takes a job to its end and writes that with `finish`.
    `clean` follows where it failed, or is no longer this worker's: it removes files that the row does not need any
    more. `fail` says which further fields a failure of that code sets; `failed` follows it, in its transaction.
    `afresh` holds what each attempt begins with. `project` and `postponed_as` are a field and a state.

    Where a worker goes on while the database restarts, its locks say nothing. With `silent_after` none is taken, and
    `put_back_lost` puts back the jobs whose workers have given no sign for so long.
    """

    name: str
    jobs: Callable[[], QuerySet[J]]
    work: Callable[[J], None]
    lost: str
    clean: Callable[[J], None] = _nothing
    fail: Callable[[str], Mapping[str, Any]] = lambda _: {}
    failed: Callable[[J], None] = _nothing
    afresh: Mapping[str, Any] = field(default_factory=dict)
    project: str = "project_id"
    postponed_as: str = ""
    queues: tuple[str, ...] = ()
    silent_after: timedelta | None = None
    hand_on: Callable[[J], None] = _nothing


def run_waiting(kind: JobKind[J], *, most: int | None = None) -> int:
    """Works through the jobs that wait, one after the other; returns how many this worker is rid of for good."""
    ended = 0
    while ended != most and heartbeats.takes_work():
        with ExitStack() as held:  # the locks that stand for this worker
            may_take = kind.silent_after or (_has_thread(held) and _has_place(kind.name, held))
            job = _take(kind, held) if may_take else None
            if job is None or not _carry_out(kind, job):
                break
        ended += 1
    return ended


def owned(job: J) -> QuerySet[J]:
    """Selects the job's row as long as it is at work and this worker's."""
    rows: QuerySet[J] = type(job)._default_manager.filter(pk=job.pk)
    return rows.filter(attempt=job.attempt, state=job.UNDER_WAY[1])


def write(job: Job, **fields: Any) -> None:
    """Writes to the job's row. Raises Ended where it is no longer this worker's."""
    if not owned(job).update(**fields):
        raise Ended


def finish(job: Job, **fields: Any) -> None:
    """Writes that the job is done, and what came of it. Raises Ended."""
    write(job, **{"state": "done", "finished_at": database_now()} | fields)


def require_go_on() -> None:
    """Raises Postponed if this worker was asked to stop."""
    if stopping.is_set():
        raise Postponed


def finish_left(name: str, left: QuerySet[Any], finish: Callable[[Any], int], *, project: str = "project_id") -> int:
    """Does for every row what is left of its work; returns the sum of what `finish` returns.

    A failure keeps no other row from being finished. The first one of a project is written down with it
    (background/failures.py).
    """

    def of_project(at: Project) -> int | None:
        done, failed = 0, []
        with locks.session_lock(name, at.pk) as is_ours:
            if not is_ours:
                return None
            for row in left.filter(**{project: at.pk}).order_by("pk"):
                try:
                    done += finish(row)
                except Exception as error:  # noqa: BLE001  whatever fails in one row, the next ones do not wait for it
                    failed.append(error)
        if failed:
            raise failed[0]
        return done

    with ExitStack() as held:
        if not _has_place(name, held):
            return 0
        return failures.each_project(name, Project.objects.filter(pk__in=left.values(project)), of_project)


# Whose turn it is ------------------------------------------------------------------------------------------


def by_turns(rows: QuerySet[J], *, project: str = "project_id") -> QuerySet[J]:
    """Orders jobs by when a worker last had one of the same person's, then of the same project's, never first.

    So nobody's many jobs keep others waiting. Those of one person in one project come in their order.
    """
    jobs: QuerySet[J] = rows.model._default_manager.filter(heartbeat_at__isnull=False).order_by("-heartbeat_at")
    person, of_project = (
        Subquery(jobs.filter(**{whose: OuterRef(whose)}).values("heartbeat_at")[:1])
        for whose in ("requested_by_id", project)
    )
    never_first = (F(name).asc(nulls_first=True) for name in ("person_served", "project_served"))
    ordered: QuerySet[Any] = rows.alias(person_served=person, project_served=of_project).order_by(*never_first, "pk")
    return ordered


def _has_thread(held: ExitStack) -> bool:
    # A worker's last thread is left to what takes a moment.
    if not _of_this_process.acquire(blocking=False):
        return False
    held.callback(_of_this_process.release)
    return True


def _has_place(name: str, held: ExitStack) -> bool:
    return any(held.enter_context(locks.session_lock(f"place: {name}", at)) for at in range(settings.JOBS_AT_ONCE))


def _take(kind: JobKind[J], held: ExitStack) -> J | None:
    busy: set[int] = set()
    waiting = by_turns(_claimable(kind), project=kind.project).values_list("pk", kind.project)
    for pk, project in list(waiting):
        if project in busy:
            continue
        with ExitStack() as tried:
            if not kind.silent_after and not tried.enter_context(locks.session_lock(kind.name, project)):
                busy.add(project)
                at_work = kind.jobs().filter(**{kind.project: project}, state=kind.jobs().model.UNDER_WAY[1])
                if at_work.filter(heartbeat_at__lt=database_now() - SILENT_AFTER).exists():
                    with connection.cursor() as cursor:
                        cursor.execute(_END_HOLDER, [kind.name, project])
            elif job := _fenced(kind, pk):
                if job.tries <= ATTEMPTS:
                    held.push(tried.pop_all())
                    return job
                _fail(kind, job, kind.lost, "worker_lost")
    return None


def _claimable(kind: JobKind[J]) -> QuerySet[J]:
    rows = kind.jobs()
    # Those at work as well: whoever gets the lock of their project knows that their worker is lost.
    states = rows.model.UNDER_WAY
    return rows.filter(state__in=states[:1] if kind.silent_after else states)


@transaction.atomic
def _fenced(kind: JobKind[J], pk: int) -> J | None:
    """Gives the job to this worker: the new attempt fences off the writes of every earlier one."""
    # A row that somebody else has locked, to cancel it or to erase texts, keeps no other job waiting.
    job = _claimable(kind).select_for_update(skip_locked=True, of=("self",)).filter(pk=pk).first()
    if job is None:
        return None
    new = {"attempt": job.attempt + 1, "tries": job.tries + 1, "state": job.UNDER_WAY[1], **kind.afresh}
    for name, value in (new := new | {"heartbeat_at": database_now(), "error": ""}).items():
        setattr(job, name, value)
    job.save(update_fields=list(new))
    return job


_END_HOLDER = """
SELECT pg_terminate_backend(pid) FROM pg_locks
WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND classid = hashtext(%s)::oid AND objid = %s::oid
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


# What becomes of it ----------------------------------------------------------------------------------------


def _carry_out(kind: JobKind[J], job: J) -> bool:
    """Works on the job; returns False where it waits for another worker, or another time."""
    try:
        with fitness.blamed(kind.queues), disk_space.full_disk_named():
            kind.work(job)
    except Ended:
        kind.clean(job)
    except (Postponed, fitness.Unfit) as why:
        # Not the job's fault: the next worker has as many attempts as this one had.
        undone = {} if isinstance(why, FileMissing) else {"tries": job.tries - 1, "heartbeat_at": None}
        owned(job).update(state=kind.postponed_as or job.UNDER_WAY[0], **undone)
        if isinstance(why, fitness.Unfit):
            kind.hand_on(job)
        return False
    except Refusal as refused:
        # The store answers others: it may be better the next time, and this attempt counts.
        if isinstance(refused, StoreAway) and job.tries < ATTEMPTS:
            owned(job).update(state=kind.postponed_as or job.UNDER_WAY[0])
            return False
        _fail(kind, job, str(refused), refused.code)
    except (OperationalError, InterfaceError):
        # The database is away: the job stays as it is, and is taken up again when it is back.
        raise
    except Exception as error:
        if _fail(kind, job, safe_text(error), "error"):  # otherwise it was cancelled, or has gone with its project
            raise
    return True


def put_back_lost(kind: JobKind[J], *, now: datetime) -> None:
    """Has other workers take the jobs of those that have gone silent, or fails them after the last attempt."""
    assert kind.silent_after
    waiting, working = kind.jobs().model.UNDER_WAY
    lost = kind.jobs().filter(state=working, heartbeat_at__lt=now - kind.silent_after)
    for job in lost.filter(tries__gte=ATTEMPTS):
        _fail(kind, job, kind.lost, "worker_lost")
    lost.order_by().update(state=waiting)


def _fail(kind: JobKind[J], job: J, error: str, code: str) -> bool:
    """Ends the job with its error; returns False where it is not this worker's any more."""
    said = without_places(error)[:LONGEST_ERROR]
    with transaction.atomic():
        fields = {"state": "failed", "error": said, "finished_at": database_now()} | dict(kind.fail(code))
        if is_ours := bool(owned(job).update(**fields)):
            kind.failed(job)
    if is_ours:
        kind.clean(job)
    return is_ours


BEAT_SECONDS = 1.0


def require_ours(job: Job) -> None:
    """Raises Ended where the job is no longer this worker's. In a transaction it stays so until the end."""
    if not owned(job).select_for_update().exists():
        raise Ended


def beat(job: Job) -> None:
    """Says that the job's worker is alive, as long as it has the job."""
    owned(job).update(heartbeat_at=database_now())


@contextmanager
def beating(beat: Callable[[], object]) -> Iterator[None]:
    """Calls `beat` every few seconds while the block waits for the object store; without one, never."""
    if not store.is_remote():
        yield
        return
    over = threading.Event()

    def go_on() -> None:
        try:
            while not over.wait(BEAT_SECONDS):
                with suppress(Exception):  # whoever has the work meanwhile is found out where it is written to
                    beat()
        finally:
            connection.close()

    thread = threading.Thread(target=go_on, name="heartbeat of a job", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Pulse:
    """Writes `rows`, `bytes` and a heartbeat to a job's row, from a thread, which has a connection of its own.

    `expected` rows are written as well, once known.
    """

    def __init__(self, job: Job) -> None:
        self.rows = 0
        self.bytes = 0
        self.expected: int | None = None
        self._job = job
        self._over = threading.Event()
        self._reason: Exception | None = None

    def count(self) -> None:
        self.rows += 1

    def check(self) -> None:
        """Raises what ends the work: Postponed, Ended or DiskNearlyFull."""
        require_go_on()
        if self._reason:
            raise self._reason

    @contextmanager
    def beating(self) -> Iterator[None]:
        thread = threading.Thread(target=self._beat, name="pulse of a file", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _beat(self) -> None:
        try:
            while not self._over.wait(BEAT_SECONDS) and not self._reason:
                # While the database is away the beats are only missed.
                with suppress(OperationalError, InterfaceError):
                    self._reason = self._refusal()
        finally:
            connection.close()

    def _refusal(self) -> Exception | None:
        try:
            disk_space.require_room()
        except disk_space.DiskNearlyFull as full:
            return full
        written = {"rows_done": self.rows, "bytes_done": self.bytes, "heartbeat_at": database_now()}
        if self.expected is not None:
            written["rows_expected"] = self.expected
        return None if owned(self._job).update(**written) else Ended()
