"""Exports to files: the web keeps a row, the light worker writes the file (annotator/infrastructure/jobs.py)."""

import hashlib
import os
from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotator.infrastructure import audit, jobs
from annotator.infrastructure.background import heartbeats, messages
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.jobs import Pulse
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.storage import artifacts, disk_space, store, working_copies
from annotator.infrastructure.web.ranged_files import ranged_file
from annotator.models import ExportJob, Project, User
from annotator.outputs.exporting.export_previews import preview
from annotator.outputs.exporting.export_rows import chosen_columns, content, for_audit, for_reader, require_allowed
from annotator.outputs.exporting.file_formats import content_type, file_name
from annotator.outputs.exporting.filters import Filters, filters_from
from annotator.reading import access
from annotator.reading.search.criteria import TooBroad

MOST_WITH_FILE = 10
"""The files of a person in a project that may lie on the disk at once."""
_NO_READER = "Whoever asked for this file may no longer read the project's ratings."
State = ExportJob.State


# The web's side --------------------------------------------------------------------------------------------


def request(
    project: Project,
    *,
    layout: str,
    format: str,
    gzip: bool = False,
    filters: Filters,
    fields: Sequence[str] = (),
    by: User,
    now: datetime,
    request_id: UUID | None = None,
) -> ExportJob:
    """Has the light worker write an export to a file for the person `by`.

    Raises:
        UnknownExport, UnknownField, NoLabels, NoRubricVersion, ForManagers: As for `export`.
        Refusal: The person has too many files already.
        DiskNearlyFull, ForeignArtifacts: There is no room for it, or the folder is not this installation's.
        Refusal: Nobody listens to the queue `light`.
    """
    require_allowed(project, layout=layout, format=format, filters=filters, by=by)
    chosen_columns(project, layout, format, filters, fields)
    artifacts.require_ours()
    disk_space.require_room()
    if ExportJob.objects.with_file().filter(project=project, requested_by=by).count() >= MOST_WITH_FILE:
        text = _("You have %(number)s files of this project. Delete one that you no longer need.")
        raise Refusal(text % {"number": MOST_WITH_FILE}, code="too_many_files")
    heartbeats.require("light")
    with transaction.atomic():
        job = ExportJob.objects.create(
            project=project,
            requested_by=by,
            layout=layout,
            format=format,
            gzip=gzip and format != "zip",
            filters=filters.as_parameters(),
            fields=list(fields),
            created_at=now,
            request_id=request_id,
        )
        audit.record(
            "labels.file_requested", _subject(job), project=project, **for_audit(layout, format, filters, fields)
        )
        messages.send_on_commit("annotator.tasks.run_exports")
    return job


def jobs_of(project: Project, user: User) -> QuerySet[ExportJob]:
    """Returns the person's own jobs of a project, the newest first."""
    return ExportJob.objects.filter(project=project, requested_by=user).order_by("-pk")


def file_of(job: ExportJob) -> Path:
    """Returns the job's file for its requester, who has asked to download it.

    Raises:
        Refusal: It is not written yet, or not there any more.
        ForManagers: The person may not have this layout any more.
    """
    if job.state != State.DONE:
        raise Refusal(str(_WITHOUT_FILE[State(job.state)]), code="no_file")
    filters = filters_from(job.filters)
    require_allowed(job.project, layout=job.layout, format=job.format, filters=filters, by=job.requested_by)
    artifacts.require_ours()
    if not store.has(job.file()):
        raise Refusal(_("The file is missing from the disk. Ask for it again."), code="no_file")
    return job.file()


_NOT_YET = gettext_lazy("The file is not written yet. Try again when the job is done.")
_WITHOUT_FILE = {
    State.WAITING: _NOT_YET,
    State.WORKING: _NOT_YET,
    State.FAILED: gettext_lazy("The file could not be written; the job says why. Ask for it again."),
    State.EXPIRED: gettext_lazy("The file was kept for 7 days and is deleted. Ask for it again."),
    State.WITHDRAWN: gettext_lazy(
        "A text was erased or a task deleted after the file was written, so the file was deleted. Ask for it again."
    ),
}


def delete(job: ExportJob) -> None:
    """Cancels the job, or deletes its file and the row."""
    with transaction.atomic():
        row = ExportJob.objects.select_for_update().filter(pk=job.pk).first()
        if row is None:
            return
        audit.record("labels.file_deleted", _subject(job), project=job.project)
        row.delete()
        transaction.on_commit(partial(_remove_files, job))


def _subject(job: ExportJob) -> str:
    return f"layout {job.layout}, file {job.pk}"


def _remove_files(job: ExportJob) -> None:
    store.discard(job.directory())


# The worker's side -----------------------------------------------------------------------------------------


def run_waiting() -> int:
    """Writes the files that wait, one after the other; returns how many jobs have ended."""
    return jobs.run_waiting(_EXPORTS)


def _write(job: ExportJob) -> None:
    artifacts.require_ours()
    disk_space.require_room()
    _remove_files(job)
    job.directory().mkdir(parents=True)
    digest, pulse = hashlib.sha256(), Pulse(job)
    # PostgreSQL may be sending rows until `parts` is closed: until then this connection takes no other statement.
    with job.file().open("xb") as file, pulse.beating(), closing(_parts(job, pulse)) as parts:
        for part in parts:
            file.write(part)
            digest.update(part)
            pulse.bytes += len(part)
            pulse.check()
        file.flush()
        os.fsync(file.fileno())
    with jobs.beating(partial(jobs.beat, job)):
        store.put(job.directory(), require_ours=partial(jobs.require_ours, job))
    jobs.finish(job, rows_done=pulse.rows, bytes_done=pulse.bytes, sha256=digest.hexdigest())


def _parts(job: ExportJob, pulse: Pulse) -> Generator[bytes]:
    project, reader = job.project, job.requested_by
    # What the person may read can have changed since the file was asked for.
    if not access.reviewed_projects(reader).filter(pk=project.pk).exists():
        raise Refusal(_NO_READER, code="no_file")
    chosen: dict[str, Any] = {"layout": job.layout, "format": job.format, "by": reader}
    chosen["filters"] = for_reader(filters_from(job.filters), project, reader)
    require_allowed(project, **chosen)
    columns = chosen_columns(project, job.layout, job.format, chosen["filters"], job.fields)
    with suppress(TooBroad):
        jobs.write(job, rows_expected=preview(project, **chosen, fields=job.fields).rows)
    yield from content(project, columns, **chosen, gzip=job.gzip, fields=job.fields, on_row=pulse.count)


def _clean(job: ExportJob) -> None:
    if not ExportJob.objects.with_file().filter(pk=job.pk).exists():  # otherwise another worker has the folder
        _remove_files(job)


_EXPORTS = jobs.JobKind(
    "export jobs",
    jobs=lambda: ExportJob.objects.select_related("project__rubric", "requested_by"),
    work=_write,
    lost=f"{jobs.LOST}, then ask for the file again.",
    clean=_clean,
    afresh={"rows_done": 0, "bytes_done": 0},
)


# Leftovers -------------------------------------------------------------------------------------------------


def sweep(*, now: datetime) -> int:
    """Removes files that are old, withdrawn or nobody's; returns the number of folders that it removed.

    Raises ForeignArtifacts.
    """
    artifacts.require_ours()
    old = ExportJob.objects.filter(state=State.DONE, finished_at__lt=now - ExportJob.FILE_KEPT)
    old.update(state=State.EXPIRED, sha256="")
    ExportJob.objects.filter(finished_at__lt=now - ExportJob.KEPT).delete()
    # The folders are listed before the rows: one that is made meanwhile has its row already.
    folders = store.places_in("exports")
    needed = {str(pk) for pk in ExportJob.objects.with_file().values_list("pk", flat=True)}
    rest = [folder for folder in folders if folder.name not in needed]
    store.discard(*rest)
    return len(rest)


working_copies.sweeps.append(lambda: sweep(now=database_now()))


def downloaded(request: HttpRequest, job: ExportJob) -> HttpResponseBase:
    """Returns the job's file, or the part that the request asks for. Raises Refusal and ForManagers, as `file_of`."""
    path = file_of(job)
    chosen = for_audit(job.layout, job.format, filters_from(job.filters), job.fields)
    audit.record("labels.exported", f"layout {job.layout}, file {job.pk}", project=job.project, **chosen)
    kind, name = content_type(job.format, gzip=job.gzip), file_name(job.project, job.layout, job.format, gzip=job.gzip)
    return ranged_file(request, path, content_type=kind, name=name, sha256=job.sha256)
