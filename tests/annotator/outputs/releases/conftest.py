"""A project with labels, preferences and ratings, and releases of it."""

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from annotator.infrastructure.background import heartbeats
from annotator.infrastructure.db.clock import database_now
from annotator.models import Project, Release, Task
from annotator.outputs.exporting import file_formats, parquet_process
from annotator.outputs.exporting.columns import Row, Type
from annotator.outputs.releases import release_jobs
from annotator.outputs.releases.particulars import Particulars
from tests.annotator.outputs.exporting.test_preferences import preferred
from tests.conftest import Cast

Made = Callable[..., Release]


@pytest.fixture(autouse=True)
def light_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "require", lambda queue: None)


@pytest.fixture
def no_writing_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parquet is written by the same function in this process, where a process of its own for each file proves nothing.

    A release has up to six files. Those of test_checks.py are written by processes, as are
    those of exports and of a worker that is killed.
    """
    monkeypatch.setattr(file_formats, "_parquet", parquet_from_here)


def parquet_from_here(rows: Iterable[Row], columns: Mapping[str, Type]) -> Iterator[bytes]:
    file = io.BytesIO()
    parquet_process.write(file_formats.json_lines(rows), json.loads(json.dumps(columns)), file)
    yield file.getvalue()


@pytest.fixture
def rated(project: Project, cast: Cast) -> list[Task]:
    """Six tasks that all annotators have rated, on both sides of the split."""
    Project.objects.filter(pk=project.pk).update(validation_share=0.3)
    project.refresh_from_db()
    return [preferred(project, cast, 2, 1, 2, level=[n % 4, 3], name=f"t-{n}", lang="en") for n in range(6)]


@pytest.fixture
def made(project: Project, cast: Cast) -> Made:
    """Makes a release, and returns it as it stands once the worker has been at it."""

    def make(**particulars: Any) -> Release:
        release = release_jobs.request(project, Particulars(**particulars), by=cast.carol, now=database_now())
        release_jobs.run_waiting()
        return again(release)

    return make


def again(release: Release) -> Release:
    return release_jobs.releases_of(release.project).get(pk=release.pk)


def elsewhere(act: Callable[[], object]) -> None:
    """Does something in another connection, whose changes this one sees once they are committed."""

    def act_and_hang_up() -> None:
        act()
        connection.close()

    with ThreadPoolExecutor(1) as threads:
        threads.submit(act_and_hang_up).result()
