"""What other accounts of the machine can read of us: nothing."""

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from annotator.launch import embedded, run
from annotator.launch.embedded import postgres
from tests.attacks.test_full_disk import var_dir

__all__ = ["var_dir"]

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another account")


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABASE_URL")
    monkeypatch.setenv("REDIS_URL", "redis://unused")


def open_to_others(folder: Path) -> list[str]:
    """What below the folder another account could read, on a way that it could go."""
    exposed = []
    for path in folder.iterdir():
        mode = path.lstat().st_mode
        if path.is_dir() and mode & stat.S_IXOTH:
            exposed += open_to_others(path)
        elif path.is_file() and mode & (stat.S_IROTH | stat.S_IRGRP):
            exposed.append(path.name)
    return exposed


@pytest.mark.slow
def test_others_read_nothing_below_var_dir(var_dir: Path, usual_umask: None, addresses: None) -> None:
    (var_dir / "artifacts").mkdir(mode=0o755)
    (var_dir / "artifacts" / "old.jsonl").write_text("a text that somebody wrote")
    run.keep_private(var_dir)
    run.keep_secret_key(var_dir / "secret-key")
    with embedded.services(var_dir) as started, run.published(started, var_dir / "services.json"):
        (var_dir / "logs" / "web.log").write_text("an address")
        assert open_to_others(var_dir) == []


@as_root
@pytest.mark.slow
def test_programs_of_postgresqls_account_do_not_log_in(var_dir: Path, addresses: None) -> None:
    with embedded.services(var_dir) as started:
        psycopg.connect(started.database_url).close()
        (server,) = started.servers
        assert isinstance(server, embedded.Postgres)
        command = [str(server.programs / "psql"), "--dbname", started.database_url, "--command", "SELECT 1"]
        credentials = postgres.as_account(server.account)
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", **credentials)
    assert done.returncode
    assert "Peer authentication failed" in done.stderr
