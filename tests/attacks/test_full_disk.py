"""A disk that fills up: what writes much is refused before, and everything comes back when there is room again."""

import os
import shutil
import subprocess
import tempfile
import time
from collections import namedtuple
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import LazySettings
from django.test import Client
from rest_framework.test import APIClient

from annotator.infrastructure.background import heartbeats
from annotator.infrastructure.background.heartbeats import QueueHealth
from annotator.infrastructure.storage import disk_space
from annotator.infrastructure.web import body_limits
from annotator.launch import embedded
from annotator.launch.embedded import Redis
from annotator.launch.supervisor import Supervisor
from annotator.models import Project, Task
from annotator.stages.importing import decoders
from rewards import snapshots
from rewards.models import TrainingRun
from rewards.runs import runs
from tests import servers
from tests.annotator.api.test_work import form, leased
from tests.builders import NOW, imported, json_lines, label_row, task_row
from tests.conftest import Cast

Usage = namedtuple("Usage", ["total", "used", "free"])
MEGABYTE = 10**6


@pytest.fixture
def nearly_full(monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> None:
    settings.DISK_RESERVE_MB = 100
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**9, 10**9, 42 * MEGABYTE))


@pytest.fixture
def carol(project: Project, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> APIClient:
    imported(project, *(label_row(f"Question {number}?", "Answer.") for number in range(20)))
    monkeypatch.setattr(heartbeats, "listening", lambda: {queue: QueueHealth(1, 0.0) for queue in heartbeats.QUEUES})
    client = APIClient()
    client.force_authenticate(cast.carol)
    return client


@pytest.mark.parametrize("door", ["import", "training-runs", "snapshots"])
def test_what_writes_much_is_refused_in_time(carol: APIClient, nearly_full: None, door: str) -> None:
    body = json_lines(task_row("new")).read().decode() if door == "import" else "{}"
    media = "application/x-ndjson" if door == "import" else "application/json"
    answer = carol.generic("POST", f"/api/v1/projects/talk/{door}/", body, content_type=media)
    assert (answer.status_code, answer.json()["code"]) == (507, "disk_full")
    assert "the folder of the artifacts has 42 MB free, and 100 MB are needed" in answer.json()["detail"]
    assert not Task.objects.filter(external_id="new").exists()
    assert not TrainingRun.objects.exists()


def test_an_import_stops_where_the_room_ends(
    project: Project, monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    free = iter([500 * MEGABYTE] * 2 + [42 * MEGABYTE] * 9)
    settings.DISK_RESERVE_MB, settings.DATABASE_DIR = 100, ""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**9, 0, next(free)))
    monkeypatch.setattr("annotator.stages.importing.batches.BATCH", 1)
    with pytest.raises(disk_space.DiskNearlyFull):
        imported(project, *(task_row(f"t-{number}") for number in range(5)))
    assert Task.objects.count() == 2


def test_no_upload_begins_for_which_there_is_no_room(
    carol: APIClient, monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    settings.DISK_RESERVE_MB = 100
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**9, 0, 150 * MEGABYTE))

    def asked(announced: int, media: str = "text/csv") -> int:
        waits: dict[str, Any] = {body_limits.WAITS: announced}
        return carol.generic("POST", "/api/v1/projects/talk/import/", content_type=media, **waits).status_code

    form = "multipart/form-data; boundary=x"
    assert (asked(40 * MEGABYTE), asked(60 * MEGABYTE), asked(40 * MEGABYTE, form)) == (204, 507, 507)
    assert asked(0) == 507, "a body of unknown length may be as large as any"


def test_a_copy_for_the_parquet_decoder_ends_where_the_room_does(
    monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    free = iter([500 * MEGABYTE, 500 * MEGABYTE, 42 * MEGABYTE])
    settings.DISK_RESERVE_MB, settings.DATABASE_DIR = 100, ""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**9, 0, next(free)))
    source = BytesIO(b"PAR1" + bytes(40 * MEGABYTE))
    with pytest.raises(disk_space.DiskNearlyFull), decoders.decoded_lines(source):
        pass
    assert source.tell() < 20 * MEGABYTE


def test_the_folder_for_temporary_files_is_watched(nearly_full: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: "/proc")
    assert "the folder for temporary files" in {shortage.folder for shortage in disk_space.shortages()}


def test_when_there_is_room_again_runs_go_on(
    carol: APIClient, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as full:
        full.setattr(shutil, "disk_usage", lambda _: Usage(10**9, 10**9, 0))
        with pytest.raises(disk_space.DiskNearlyFull):
            snapshots.take(project, now=NOW)
    snapshots.take(project, now=NOW)
    assert runs.request(project, reason="a test").pk


def test_health_and_pages_name_the_disk(carol: APIClient, cast: Cast, client: Client, nearly_full: None) -> None:
    answer = client.get("/api/v1/health/ready/").json()
    assert (answer["status"], answer["disk"], answer["error"]) == ("degraded", False, "The disk is nearly full.")
    cast.carol.is_staff = True
    cast.carol.save(update_fields=["is_staff"])
    client.force_login(cast.carol)
    assert "42 MB free" in client.get("/admin/").content.decode()
    assert "The disk is nearly full" in client.get("/").content.decode()
    client.force_login(cast.alice)
    assert "disk" not in client.get("/").content.decode()


def test_ratings_are_never_refused_for_the_disk(carol: APIClient, cast: Cast, nearly_full: None) -> None:
    client = APIClient()
    client.force_authenticate(cast.alice)
    lease = leased(client)
    assert client.put(f"/api/v1/assignments/{lease['assignment']}/annotation/", form(lease)).status_code == 201


# The supervisor --------------------------------------------------------------------------------------------


@pytest.fixture
def var_dir(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that PostgreSQL's account reaches."""
    with tempfile.TemporaryDirectory(prefix="rewardloop-") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


def supervised(*servers: Any, folder: Path) -> Supervisor:
    return Supervisor((), servers=servers, environment={}, root=folder, logs=folder / "logs")


def turn_until(supervisor: Supervisor, condition: Any, *, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        supervisor.turn(0.05)


@pytest.mark.slow
def test_a_server_that_cannot_start_is_tried_until_it_can(var_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = Redis(var_dir / "redis", var_dir / "logs" / "redis.log", throwaway=False)
    server.start()
    try:
        supervisor = supervised(server, folder=var_dir)
        assert server.process.running is not None
        server.process.running.kill()
        server.process.running.wait()
        shutil.move(server.home, var_dir / "away")
        for _ in range(60):
            supervisor.turn(0.05)
        assert not server.process.alive()
        assert all(server.process.alive() for server in servers.running), "it ends nobody's processes but its own"
        shutil.move(var_dir / "away", server.home)
        turn_until(supervisor, server.process.alive)
        assert "died, is started again" in capsys.readouterr().out
    finally:
        server.stop()


@pytest.fixture
def small_disk(var_dir: Path) -> Iterator[Path]:
    if os.geteuid():
        pytest.skip("only root can mount a small disk")
    place = var_dir / "small"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160m,mode=711", "tmpfs", place], check=False).returncode:
        pytest.skip("a small disk cannot be mounted here")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def fill(folder: Path) -> Path:
    file = folder / "ballast"
    subprocess.run(["dd", "if=/dev/zero", f"of={file}", "bs=1M"], check=False, stderr=subprocess.DEVNULL)
    return file


def write_ahead(database: "psycopg.Connection[Any]") -> None:
    """Nothing but PostgreSQL's log grows by it."""
    for _ in range(300):
        database.execute("SELECT pg_logical_emit_message(false, 'a test', repeat('x', 1000000))")


@pytest.mark.slow
def test_postgresql_comes_back_when_there_is_room_again(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DATABASE_URL")
    monkeypatch.setenv("REDIS_URL", "redis://unused")
    with embedded.services(small_disk) as started:
        (server,) = started.servers
        supervisor = supervised(server, folder=small_disk)
        with psycopg.connect(started.database_url, autocommit=True) as database:
            database.execute("CREATE TABLE kept AS SELECT 42 AS answer")
            ballast = fill(small_disk)
            with pytest.raises(psycopg.OperationalError):
                write_ahead(database)
        turn_until(supervisor, lambda: not server.process.alive(), seconds=30)
        for _ in range(100):
            supervisor.turn(0.05)
        assert not answers(started.database_url)
        ballast.unlink()
        turn_until(supervisor, lambda: answers(started.database_url))
        with psycopg.connect(started.database_url) as database:
            assert database.execute("SELECT answer FROM kept").fetchone() == (42,)
    assert "No space left on device" in capsys.readouterr().out


def answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True
