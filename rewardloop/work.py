"""Longer work with the server, in several calls: imports, exports, runs, scores and archives."""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

from rewardloop import calls
from rewardloop.answers import ExportJob, ImportJob, ImportResult, Release, Run, Score, Scores
from rewardloop.downloads import check_members, saved
from rewardloop.errors import ServerAway, WorkFailed
from rewardloop.exchanges import Server, Talk, answered, finished, result
from rewardloop.progress import Advance, Told
from rewardloop.uploads import FileForm

Json = Mapping[str, Any]
MOST_ITEMS = 1_000
"""How many items one call of `score/` takes."""
IMPORT_ENDED = ("done", "failed", "cancelled")
RUN_ENDED = ("promoted", "rejected", "failed", "cancelled", "awaiting_promotion")
WRITTEN = ("done", "failed", "expired", "withdrawn")


def token_revoked(server: Server) -> Talk[bool]:
    """Revokes the token with which this is asked; returns whether it is on the account's list."""
    call, query = calls.tokens(), ""
    while True:
        page = call.parse((yield from answered(server, call, query=query)))
        own = [token.id for token in page.results if server.token.startswith(token.begins)]
        if len(own) == 1:
            yield from result(server, calls.revoke(own[0]))
            return True
        if not (query := page.next):
            return False


def imported(
    server: Server,
    project: str,
    *,
    file: IO[bytes],
    name: str,
    query: Json,
    told: Told,
    within: float | None,
) -> Talk[ImportResult]:
    """Sends a file, and waits until its rows are tasks."""
    form = FileForm(file, name, told=lambda sent: told(Advance("sending", sent, form.size)))
    job = yield from result(server, calls.start_import(project, form, query=query, headers=form.headers))
    job = yield from _import_ended(server, project, job, told=told, within=within)
    return (yield from _imported_file(server, project, job, name=name))


def imported_from_hub(
    server: Server,
    project: str,
    *,
    name: str,
    query: Json,
    told: Told,
    within: float | None,
) -> Talk[ImportResult]:
    """Has the server fetch a data set of the Hub, and waits until the rows of all its files are tasks."""
    ends = None if within is None else time.monotonic() + within
    asked = yield from result(server, calls.start_import_of_hub(project, name, query=query))
    first = yield from _import_ended(server, project, asked, told=told, within=within)
    files = [(yield from _imported_file(server, project, first, name=first.hub))]
    # Their jobs are there as soon as the first one has its file.
    for job in (yield from _others_of(server, project, first)):
        left = None if ends is None else max(ends - time.monotonic(), 0.0)
        ended = yield from _import_ended(server, project, job, told=told, within=left)
        files.append((yield from _imported_file(server, project, ended, name=ended.hub)))
    return files[0] if len(files) == 1 else _all_of(files, name=name)


def _others_of(server: Server, project: str, first: ImportJob) -> Talk[list[ImportJob]]:
    """Returns the jobs of the data set's further files, which have the time of the request in common."""
    if first.created_at is None:
        return []
    call, query, others = calls.import_jobs(project, since=first.created_at), "", []
    while True:
        page = call.parse((yield from answered(server, call, query=query)))
        same = [job for job in page.results if job.created_at == first.created_at and job.hub and job.id != first.id]
        others += same
        if not (query := page.next):
            return others


def _all_of(files: Sequence[ImportResult], *, name: str) -> ImportResult:
    return ImportResult(
        created=sum(file.created for file in files),
        existing=sum(file.existing for file in files),
        rejected=sum(file.rejected for file in files),
        ratings_added=sum(file.ratings_added for file in files),
        ratings_left_out=sum(file.ratings_left_out for file in files),
        dry_run=files[0].dry_run,
        name=name,
        files=tuple(files),
    )


def _import_ended(server: Server, project: str, job: ImportJob, *, told: Told, within: float | None) -> Talk[ImportJob]:
    return (
        yield from finished(
            server,
            calls.import_job(project, job.id),
            is_done=lambda now: now.state in IMPORT_ENDED,
            told=lambda now: told(Advance("importing", now.bytes_read, now.file_bytes)),
            within=within,
        )
    )


def _imported_file(server: Server, project: str, job: ImportJob, *, name: str) -> Talk[ImportResult]:
    _require(job, f"The import of {name}")
    listed = job.rejected or job.ratings_left_out
    refused = (yield from result(server, calls.refused_rows(project, job.id))) if listed else ()
    return ImportResult(
        created=job.created,
        existing=job.existing,
        rejected=job.rejected,
        ratings_added=job.ratings_added,
        ratings_left_out=job.ratings_left_out,
        refused=refused,
        notes=job.notes,
        import_id=job.import_id,
        dry_run=job.dry_run,
        name=name,
        raw=job.raw,
    )


def exported(
    server: Server,
    project: str,
    *,
    to: Path,
    wanted: Json,
    told: Told,
    within: float | None,
) -> Talk[Path]:
    """Has the server write a file, and downloads it."""
    job = yield from result(server, calls.start_export(project, wanted))
    job = yield from finished(
        server,
        calls.export_job(project, job.id),
        is_done=lambda now: now.state in WRITTEN,
        told=lambda now: told(Advance("writing", now.rows_done, now.rows_expected or 0)),
        within=within,
    )
    _require(job, "The export")
    return (yield from saved(server, calls.export_file(project, job.id), to=to, told=told, sha256=job.sha256))


def run_ended(server: Server, number: int, *, told: Callable[[Run], object] | None, within: float | None) -> Talk[Run]:
    """Waits until a run has ended or wants a decision; how it ended is in its state."""
    return (
        yield from finished(
            server, calls.run(number), is_done=lambda now: now.state in RUN_ENDED, told=told, within=within
        )
    )


def release_made(
    server: Server, project: str, *, number: int, told: Callable[[Release], object] | None, within: float | None
) -> Talk[Release]:
    """Waits until a release has its files."""
    release = yield from finished(
        server,
        calls.release(project, number),
        is_done=lambda now: now.state in WRITTEN,
        told=told,
        within=within,
    )
    _require(release, f"Release {number}")
    return release


def release_saved(server: Server, project: str, *, number: int, to: Path, told: Told) -> Talk[Path]:
    """Downloads the archive of a release."""
    release = yield from result(server, calls.release(project, number))
    _require(release, f"Release {number}")
    call = calls.release_archive(project, number)
    return (yield from saved(server, call, to=to, told=told, sha256=release.archive_sha256))


def model_saved(server: Server, number: int, *, to: Path, part: str, told: Told) -> Talk[Path]:
    """Downloads the archive of a model, and compares each of its files with the server's list."""
    files = yield from result(server, calls.model_files(number))
    archive = yield from saved(server, calls.model_archive(number, part=part), to=to, told=told)
    check_members(archive, files)
    return archive


def scored(
    server: Server,
    items: Iterable[Json],
    *,
    project: str,
    model: int | None,
    told: Told,
    within: float | None,
) -> Talk[Scores]:
    """Scores any number of items, all of them by one model, even if another is promoted meanwhile."""
    results: list[Score] = []
    used = model
    for batch in batches(items):
        given = yield from result(server, calls.score(batch, project=project, model=used))
        if given.results is None and given.id is not None:
            given = yield from finished(
                server,
                calls.scoring_job(given.id),
                is_done=lambda now: now.state in {"done", "failed"},
                within=within,
            )
        if given.results is None:
            raise WorkFailed(f"The items could not be scored: {given.error or given.state}")
        results += given.results
        used = given.model
        told(Advance("scoring", len(results), 0))
    return Scores(model=cast("int", used), results=tuple(results))


def batches(items: Iterable[Json]) -> Iterable[Sequence[Json]]:
    """Yields the items in lists that one call takes; an empty list for no items, which the server refuses."""
    left = iter(items)
    batch = list(islice(left, MOST_ITEMS))
    yield batch
    while batch := list(islice(left, MOST_ITEMS)):
        yield batch


def _require(work: ImportJob | ExportJob | Release, what: str) -> None:
    """Raises WorkFailed for work that is not done."""
    if work.state != "done":
        raise WorkFailed(f"{what} is {work.state}. {work.error}".rstrip())


class Lines:
    """Cuts pieces of bytes into rows of JSON, one on each line. Only a line feed ends a line, as in JSON lines."""

    def __init__(self) -> None:
        self._rest = b""

    def rows(self, piece: bytes) -> list[dict[str, Any]]:
        """Returns the rows that end in this piece."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        return [row_of(line) for line in lines if line.strip()]

    def last(self) -> list[dict[str, Any]]:
        """Returns the row that no line feed ends, if there is one."""
        return [row_of(self._rest)] if self._rest.strip() else []


def row_of(line: bytes) -> dict[str, Any]:
    """Returns the row in a line of JSON. Raises ServerAway for a line that was cut off."""
    try:
        row: dict[str, Any] = json.loads(line)
    except ValueError as cut:
        raise ServerAway("The rows broke off in the middle of one. Ask for them again.") from cut
    return row
