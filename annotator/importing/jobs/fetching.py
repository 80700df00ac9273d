"""The files of a data set of the Hub as files of imports: the light worker fetches them, as the web waits for nobody.

It asks as a stranger. A data set that the operator's token alone can read would else be there for every manager.
"""

from collections.abc import Callable
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from annotator import audit
from annotator.background import heartbeats, messages
from annotator.importing import hub, samples
from annotator.importing.batches import shown_name
from annotator.importing.expansion_limits import FileTooLarge
from annotator.importing.jobs.files import file_of, keep, remove_files, sample_file_of
from annotator.importing.jobs.uploads import require_places, subject
from annotator.importing.mappings import ColumnMapping, read_mapping, require_columns
from annotator.models import ImportJob, Project, User
from annotator.reading.in_use import require_in_use
from annotator.storage import artifacts, disk_space

State = ImportJob.State


def request_from_hub(
    project: Project,
    name: str,
    *,
    by: User,
    now: datetime,
    dry_run: bool = False,
    mapping: ColumnMapping | None = None,
    fetch_only: bool = False,
) -> ImportJob:
    """Has the light worker fetch a public data set, a folder or a file of it, and import it.

    With `fetch_only` each file waits for somebody to look at it and start it, as an upload does.

    Raises:
        Refusal, BadHubName: Nothing is fetched.
        DiskNearlyFull, ForeignArtifacts, Refusal: Nothing can be fetched now.
    """
    meant = hub.parsed(name)
    require_in_use(project)
    artifacts.require_ours()
    disk_space.require_room()
    require_places(project, 1, now=now)
    heartbeats.require("light")
    with transaction.atomic():
        job = ImportJob.objects.create(
            project=project,
            requested_by=by,
            hub=str(meant),
            fetch_only=fetch_only,
            file_name=shown_name(meant.path or meant.repository),
            created_at=now,
            state=State.WAITING,
            dry_run=dry_run,
            mapping=mapping.as_json() if mapping else None,
        )
        audit.record("import.requested", subject(job), project=project, hub=str(meant))
        messages.send_on_commit("annotator.tasks.run_imports")
    return job


def fetch(job: ImportJob, *, update: Callable[..., None], on_piece: Callable[[], None], now: datetime) -> None:
    """Writes the job's file, and a sample of its rows. Of several files each further one gets a job of its own.

    `update` writes fields of the job, and raises where it is no longer this worker's. `on_piece` is called for each
    piece of the file.

    Raises:
        HubRefused: The Hub does not have it, or does not answer.
        FileTooLarge, Refusal: There is more than is taken.
        MissingColumn: The mapping names a column that the file does not have.
        UnreadableFile: The file cannot be read.
    """
    first, *others = hub.files_of(hub.parsed(job.hub), token=False)
    for file in (first, *others):
        _require_size(file)
    with transaction.atomic():
        # The job has a place already.
        require_places(job.project, len(others), now=now)
        update(hub=str(first.name), file_name=shown_name(first.name.path))
        ImportJob.objects.bulk_create(_job_like(job, file) for file in others)
    remove_files(job)  # what an earlier attempt has left

    def read(size: int) -> bytes:
        on_piece()
        return piece(size)

    with hub.opened(first) as piece:
        digest, size = keep(read, job)
    sample = samples.take(file_of(job))
    samples.keep(sample, sample_file_of(job))
    if job.mapping:
        require_columns(read_mapping(job.mapping), sample.columns)
    job.state = State.UPLOADED if job.fetch_only else job.state
    update(file_hash=digest, file_bytes=size, state=job.state)
    job.file_hash, job.file_bytes, job.file_name = digest, size, shown_name(first.name.path)


def _require_size(file: hub.HubFile) -> None:
    if file.size > settings.IMPORT_MAX_BYTES:
        text = _(
            "%(name)s has %(size)s bytes, and files of at most %(most)s are fetched. The operator can import it with "
            "`manage.py import_tasks`."
        )
        numbers = {"size": f"{file.size:,}", "most": f"{settings.IMPORT_MAX_BYTES:,}"}
        raise FileTooLarge(text % {"name": file.name, **numbers})


def _job_like(job: ImportJob, file: hub.HubFile) -> ImportJob:
    """Makes the job of a further file. Its time is that of the request, by which a client finds all it asked for."""
    return ImportJob(
        project=job.project,
        requested_by=job.requested_by,
        hub=str(file.name),
        fetch_only=job.fetch_only,
        file_name=shown_name(file.name.path),
        created_at=job.created_at,
        state=State.WAITING,
        dry_run=job.dry_run,
        mapping=job.mapping,
    )
