"""Releases as rows: the web or a command adds one, the light worker writes its files, and the row says how far it is.

The row is the truth, as for exports (annotator/exporting/jobs.py). One thread of one worker writes at a time, under a
lock that PostgreSQL releases with its process: a release that is being worked on while the lock is free has lost its
worker, and is written again from the beginning.
"""

import errno
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from functools import partial
from pathlib import Path

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import F, QuerySet
from django.utils.translation import gettext as _

from annotator import audit
from annotator.background import fitness, heartbeats, messages
from annotator.background.failures import safe_text
from annotator.background.pulse import Ended, Pulse, PutDown
from annotator.background.turns import by_turns
from annotator.db import locks
from annotator.db.clock import database_now
from annotator.exporting.rows import require_rubric_versions
from annotator.importing.bulk_copy import copy_rows
from annotator.models import Assignment, Project, Release, ReleaseTask, User
from annotator.refusals import Refusal
from annotator.releases import folder
from annotator.releases.particulars import Particulars
from annotator.storage import artifacts, disk_space
from annotator.storage.hidden_paths import without_places
from annotator.webhooks import events

ATTEMPTS = 3
MOST = 50
"""Releases that a project may have at once."""
PAUSE_SECONDS = 0.5
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LOST = (
    f"The worker or the database was lost in each of {ATTEMPTS} attempts. Check their logs and their memory, then make "
    "the release again."
)
State = Release.State


class TooManyReleases(Refusal):
    """The project has as many releases as one may have."""

    code = "too_many_releases"


# The web's side --------------------------------------------------------------------------------------------


def request(project: Project, particulars: Particulars, *, by: User, now: datetime) -> Release:
    """Has the light worker make a release of the project's data.

    Raises:
        Refusal: Nobody listens to the queue `light`.
        What `add` raises.
    """
    particulars.require_usable()
    heartbeats.require("light")
    return add(project, particulars, by=by, now=now)


def add(project: Project, particulars: Particulars, *, by: User | None, now: datetime) -> Release:
    """Adds the row of a release, under the project's next number; whoever carries out what waits writes its files.

    Raises:
        UnusableParticulars: The licence is unknown, or a text is too long or must not be published.
        NoRubricVersion: The project's rubric has never had this version.
        TooManyReleases: The project has too many already.
        DiskNearlyFull, ForeignArtifacts: There is no room for it, or the folder is not this installation's.
    """
    particulars.require_usable()
    if particulars.rubric_version is not None:
        require_rubric_versions(project, [particulars.rubric_version])
    artifacts.require_ours()
    disk_space.require_room()
    with transaction.atomic():
        # The row of the project stays locked until the end, so its releases are counted and numbered one by one.
        Project.objects.filter(pk=project.pk).update(releases_made=F("releases_made") + 1)
        if Release.objects.filter(project=project).count() >= MOST:
            text = _("%(project)s has %(number)s releases. Delete one that nobody needs any more.")
            raise TooManyReleases(text % {"project": project.name, "number": MOST})
        number = Project.objects.values_list("releases_made", flat=True).get(pk=project.pk)
        release = Release.objects.create(
            project=project, number=number, requested_by=by, created_at=now, **asdict(particulars)
        )
        audit.record("release.requested", str(release), project=project, license=release.license, title=release.title)
        messages.send_on_commit("annotator.tasks.write_releases")
    return release


def releases_of(project: Project) -> QuerySet[Release]:
    """Returns the project's releases, the newest first."""
    return Release.objects.filter(project=project).select_related("project__rubric", "requested_by").order_by("-number")


def folder_of(release: Release, reader: User | None) -> Path:
    """Returns the folder of a release's files for somebody who has asked for one of them; a command has no reader.

    Raises:
        Refusal: They are not written yet, or not there any more.
        Refusal: The reader is rating a task of the release, and would see the others' ratings of it.
    """
    if release.state != State.DONE:
        raise Refusal(_WITHOUT_FILES[State(release.state)](), code="no_files")
    artifacts.require_ours()
    held = Assignment.objects.leased().filter(annotator=reader).values("task")
    if reader and ReleaseTask.objects.filter(release=release, task_id__in=held).exists():
        raise Refusal(
            _("You are rating a task of this release yourself. Submit it or give it back before you read the release."),
            code="still_rating",
        )
    if not release.folder().is_dir():
        raise Refusal(_("The files are missing from the disk. Make the release again."), code="no_files")
    return release.folder()


_WITHOUT_FILES = {
    State.WAITING: lambda: _("The files are not written yet. Try again when the release is done."),
    State.WORKING: lambda: _("The files are not written yet. Try again when the release is done."),
    State.FAILED: lambda: _("The release could not be made; its error says why."),
    State.WITHDRAWN: lambda: _(
        "A text of the release was erased or its task deleted, so its files were withdrawn. Make a new release."
    ),
}


def delete(release: Release) -> None:
    """Cancels the release, or deletes its files and the row. Its number is not used again."""
    with transaction.atomic():
        row = Release.objects.select_for_update().filter(pk=release.pk).first()
        if row is None:
            return
        audit.record("release.deleted", str(release), project=release.project, content_hash=row.content_hash)
        row.delete()
        transaction.on_commit(partial(_remove_files, release))


def _remove_files(release: Release) -> None:
    for place in (release.unfinished_folder(), release.folder()):
        shutil.rmtree(place, ignore_errors=True)


# The worker's side -----------------------------------------------------------------------------------------


def wait_for(release: Release) -> Release:
    """Carries out what waits until the release has ended, alone or beside a worker that has it; for commands."""
    while release.is_under_way():
        if not run_waiting():
            time.sleep(PAUSE_SECONDS)
        release.refresh_from_db()
    return release


def run_waiting() -> int:
    """Writes the releases that wait, one after the other; returns how many have ended."""
    ended = 0
    with locks.session_lock("releases") as is_alone:
        while is_alone and heartbeats.takes_work() and (release := _claimed()):
            _carry_out(release)
            ended += 1
    return ended


def _claimed() -> Release | None:
    """Takes the one whose turn it is. Whoever holds the lock is alone, so one that is at work has lost its worker."""
    under_way = Release.objects.under_way()
    for release in by_turns(under_way.select_related("project__rubric")):
        # One conditional UPDATE decides; the attempt fences off the writes of every earlier worker.
        owned = under_way.filter(pk=release.pk, attempt=release.attempt)
        release.attempt, release.tries, release.state = release.attempt + 1, release.tries + 1, State.WORKING
        changes = {"state": State.WORKING, "attempt": release.attempt, "heartbeat_at": database_now()}
        if not owned.update(tries=release.tries, rows_done=0, bytes_done=0, rows_expected=None, **changes):
            continue
        if release.tries <= ATTEMPTS:
            return release
        _fail(release, _LOST)
    return None


def _carry_out(release: Release) -> None:
    try:
        with fitness.blamed(), _disk_may_fill_up():
            _make(release)
    except Ended:
        if not Release.objects.filter(pk=release.pk).exists():  # otherwise it waits again, and has the folder
            _remove_files(release)
    except (PutDown, fitness.Unfit):
        # Not the release's fault: the next worker has as many attempts as this one had.
        _owned(release).update(state=State.WAITING, tries=F("tries") - 1)
    except Refusal as refused:
        _fail(release, str(refused))
    except (OperationalError, InterfaceError):
        # The database is away: the release stays as it is, and is taken up again when it is back.
        raise
    except Exception as error:
        if _fail(release, safe_text(error)):  # otherwise it was cancelled, or has gone with its project
            raise


@contextmanager
def _disk_may_fill_up() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise disk_space.DiskNearlyFull(_("The disk is full. Try again when there is room.")) from error


def _owned(release: Release) -> QuerySet[Release]:
    return Release.objects.filter(pk=release.pk, attempt=release.attempt, state=State.WORKING)


def _fail(release: Release, error: str) -> bool:
    """Ends the release with its error; returns False where it is not this worker's any more."""
    error = without_places(error)[:10_000]
    failed = _owned(release).update(state=State.FAILED, error=error, finished_at=database_now())
    if failed:
        _remove_files(release)
    return bool(failed)


def _make(release: Release) -> None:
    artifacts.require_ours()
    disk_space.require_room()
    _remove_files(release)
    release.unfinished_folder().mkdir(parents=True)
    pulse = Pulse(partial(_owned, release))
    with pulse.beating():
        written = folder.write(release, release.unfinished_folder(), pulse, now=database_now())
    # Into its place before the row says so: a worker that is killed in between writes everything again.
    release.unfinished_folder().rename(release.folder())
    _finish(release, written, rows=pulse.rows, size=pulse.bytes)


@transaction.atomic
def _finish(release: Release, written: folder.Written, *, rows: int, size: int) -> None:
    done = _owned(release).update(
        state=State.DONE,
        content_hash=written.content_hash,
        counts=written.counts,
        files=written.files,
        archive_size=written.archive_size,
        archive_sha256=written.archive_sha256,
        rows_done=rows,
        bytes_done=size,
        finished_at=database_now(),
    )
    if not done:
        raise Ended
    # A text that is erased from here on finds these rows: whoever erases it waits for this transaction.
    copy_rows(ReleaseTask, ("task_id", "release_id"), ((task, release.pk) for task in written.tasks))
    audit.record("release.made", str(release), project=release.project, content_hash=written.content_hash)
    events.release_ready(
        release.project, release=release.number, tasks=len(written.tasks), content_hash=written.content_hash
    )


# Leftovers -------------------------------------------------------------------------------------------------


def sweep() -> int:
    """Removes the folders of releases that are withdrawn, failed or gone; returns how many. Raises ForeignArtifacts."""
    artifacts.require_ours()
    # The folders are listed before the rows: one that is made meanwhile has its row already.
    folders = list((settings.ARTIFACTS / "releases").glob("*"))
    needed = {str(pk) for pk in Release.objects.with_files().values_list("pk", flat=True)}
    rest = [place for place in folders if place.name.removeprefix(".building-") not in needed]
    for place in rest:
        shutil.rmtree(place, ignore_errors=True)
    return len(rest)
