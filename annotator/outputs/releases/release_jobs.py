"""Releases as rows: the web or a command adds one, the light worker writes its files (infrastructure/jobs.py)."""

import mimetypes
import time
from dataclasses import asdict
from datetime import datetime
from functools import partial
from pathlib import Path
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet
from django.http import Http404, HttpRequest, HttpResponseBase
from django.utils.translation import gettext as _

from annotator.infrastructure import audit, jobs
from annotator.infrastructure.background import heartbeats, messages
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.jobs import Pulse
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.storage import artifacts, disk_space, store, working_copies
from annotator.infrastructure.web.ranged_files import ranged_content, ranged_file
from annotator.infrastructure.web.tar_archives import TAR, TarArchive
from annotator.infrastructure.webhooks import events
from annotator.models import Assignment, Project, Release, ReleaseTask, User
from annotator.outputs.exporting.export_rows import require_rubric_versions
from annotator.outputs.releases import folder
from annotator.outputs.releases.folder import members_of
from annotator.outputs.releases.particulars import Particulars
from annotator.stages.importing.bulk_copy import copy_rows

MOST = 50
"""Releases that a project may have at once."""
PAUSE_SECONDS = 0.5
State = Release.State


class TooManyReleaseJobs(Refusal):
    """The project has as many releases as one may have."""

    code = "too_many_releases"


# The web's side --------------------------------------------------------------------------------------------


def request(
    project: Project, particulars: Particulars, *, by: User, now: datetime, request_id: UUID | None = None
) -> Release:
    """Has the light worker make a release of the project's data.

    Raises:
        Refusal: Nobody listens to the queue `light`.
        What `add` raises.
    """
    particulars.require_usable()
    heartbeats.require("light")
    return add(project, particulars, by=by, now=now, request_id=request_id)


def add(
    project: Project, particulars: Particulars, *, by: User | None, now: datetime, request_id: UUID | None = None
) -> Release:
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
            raise TooManyReleaseJobs(text % {"project": project.name, "number": MOST})
        number = Project.objects.values_list("releases_made", flat=True).get(pk=project.pk)
        release = Release.objects.create(
            project=project,
            number=number,
            requested_by=by,
            created_at=now,
            request_id=request_id,
            **asdict(particulars),
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
    if not store.has(release.folder()):
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
    store.discard(release.unfinished_folder(), release.folder())


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
    return jobs.run_waiting(_RELEASES)


def _make(release: Release) -> None:
    artifacts.require_ours()
    disk_space.require_room()
    _remove_files(release)
    release.unfinished_folder().mkdir(parents=True)
    pulse = Pulse(release)
    with pulse.beating():
        written = folder.write(release, release.unfinished_folder(), pulse, now=database_now())
    # Into its place before the row says so: a worker that is killed in between writes everything again.
    release.unfinished_folder().rename(release.folder())
    with jobs.beating(partial(jobs.beat, release)):
        store.put(release.folder(), require_ours=partial(jobs.require_ours, release))
    _finish(release, written, rows=pulse.rows, size=pulse.bytes)


@transaction.atomic
def _finish(release: Release, written: folder.Written, *, rows: int, size: int) -> None:
    jobs.finish(
        release,
        content_hash=written.content_hash,
        counts=written.counts,
        files=written.files,
        archive_size=written.archive_size,
        archive_sha256=written.archive_sha256,
        rows_done=rows,
        bytes_done=size,
    )
    # A text that is erased from here on finds these rows: whoever erases it waits for this transaction.
    copy_rows(ReleaseTask, ("task_id", "release_id"), ((task, release.pk) for task in written.tasks))
    audit.record("release.made", str(release), project=release.project, content_hash=written.content_hash)
    events.release_ready(
        release.project, release=release.number, tasks=len(written.tasks), content_hash=written.content_hash
    )


def _clean(release: Release) -> None:
    if not Release.objects.with_files().filter(pk=release.pk).exists():  # otherwise another worker has the folder
        _remove_files(release)


_RELEASES = jobs.JobKind(
    "releases",
    jobs=lambda: Release.objects.select_related("project__rubric"),
    work=_make,
    lost=f"{jobs.LOST}, then make the release again.",
    clean=_clean,
    afresh={"rows_done": 0, "bytes_done": 0, "rows_expected": None},
)


# Leftovers -------------------------------------------------------------------------------------------------


def sweep() -> int:
    """Removes the folders of releases that are withdrawn, failed or gone; returns how many. Raises ForeignArtifacts."""
    artifacts.require_ours()
    # The folders are listed before the rows: one that is made meanwhile has its row already.
    folders = store.places_in("releases")
    needed = {str(pk) for pk in Release.objects.with_files().values_list("pk", flat=True)}
    rest = [place for place in folders if place.name.removeprefix(".building-") not in needed]
    store.discard(*rest)
    return len(rest)


working_copies.sweeps.append(sweep)


_KINDS = {".md": "text/markdown; charset=utf-8", ".parquet": "application/vnd.apache.parquet"}


def sent_file(request: HttpRequest, release: Release, path: str, *, reader: User) -> HttpResponseBase:
    """Returns a file of the release. Raises Http404, and Refusal as `folder_of` does."""
    folder, file = folder_of(release, reader), release.file_called(path)
    if file is None:
        raise Http404
    audit.record("release.downloaded", str(release), project=release.project, file=path)
    place = folder / path
    kind = _KINDS.get(place.suffix) or mimetypes.guess_type(path)[0] or "application/octet-stream"
    return ranged_file(request, place, content_type=kind, name=place.name, sha256=file["sha256"])


def sent_archive(request: HttpRequest, release: Release, *, reader: User) -> HttpResponseBase:
    """Returns all files of the release as a tar file. Raises Refusal as `folder_of` does."""
    folder = folder_of(release, reader)
    audit.record("release.downloaded", str(release), project=release.project)
    return ranged_content(
        request,
        lambda: TarArchive(members_of(release, folder)),
        size=release.archive_size,
        content_type=TAR,
        name=f"{release.project.slug}-release-{release.number}.tar",
        sha256=release.archive_sha256,
    )
