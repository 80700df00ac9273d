"""PostgreSQL that keeps its promises to the disk, two web servers and a light worker, each of which can be killed."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings

from annotator.launch import child_processes
from annotator.launch.embedded import Postgres, Redis
from annotator.launch.embedded.postgres import postgres_account, postgres_home
from annotator.launch.run import COMMANDS, ROOT
from tests.celery_workers import wait_for

WEB = next(declared.line for declared in COMMANDS if declared.name == "web").split()[1:]
READY = "database system is ready to accept connections"
LIGHT = ["-m", "tests.storm.light_worker"]
DISK_MEGABYTES = 600
FULL_SECONDS = 3


@dataclass
class Server:
    """A process of the product, with a log that survives its restarts."""

    words: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    port: int = 0
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        self.launch()
        self.wait()

    def launch(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, *self.words],
                env={**self.environment, "PORT": str(self.port)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                start_new_session=True,
                preexec_fn=child_processes.die_with_parent(signal.SIGKILL),
            )

    def wait(self) -> None:
        """Until it answers, if it listens to anybody."""
        if self.port:
            wait_for(self.answers, what=f"the web on port {self.port}")

    def answers(self) -> bool:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/health/live/", timeout=5).close()
        except OSError:
            return False
        return True

    def kill(self) -> None:
        """-9, with all its children."""
        if self.process:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def kill_a_worker(self) -> None:
        """-9; its parent starts another one."""
        if workers := self.workers():
            os.kill(random.choice(workers), signal.SIGKILL)

    def workers(self) -> list[int]:
        assert self.process is not None
        lists = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(pid) for children in lists for pid in children.read_text().split()]


@dataclass
class Product:
    postgres: Postgres
    redis: Redis
    environment: Mapping[str, str]
    webs: tuple[Server, ...]
    light: Server
    small_disk: Path | None = None
    """What all files lie on, where we may mount one."""
    manager: str = ""
    """Their token."""

    @property
    def servers(self) -> tuple[Server, ...]:
        return (*self.webs, self.light)

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.postgres.url, autocommit=True) as connection:
            return connection.execute(sql.encode(), values).fetchall()

    def restart_postgres(self) -> None:
        """On the same files and socket, as the supervisor would."""
        self.postgres.stop()
        self.postgres.start()

    def kill_a_backend(self) -> None:
        """-9 to one of PostgreSQL's own processes: it lets go of all the others and recovers from its log."""
        backends = self.rows(
            "SELECT pid FROM pg_stat_activity WHERE datname = 'rewardloop' AND pid <> pg_backend_pid()"
        )
        starts = self.log().count(READY)
        os.kill(random.choice(backends)[0], signal.SIGKILL)
        wait_for(lambda: self.log().count(READY) > starts, what="the recovery")

    def fill_the_disk(self) -> None:
        """Until PostgreSQL's log cannot grow and it ends; with room again it is started, as the supervisor would."""
        assert self.small_disk is not None
        ballast = self.small_disk / "ballast"
        wait_for(lambda: self.ended_without_room(ballast), what="the end of PostgreSQL")
        time.sleep(FULL_SECONDS)
        ballast.unlink()
        self.postgres.start()

    def ended_without_room(self, ballast: Path) -> bool:
        """What room is left is filled and PostgreSQL made to write its log, which it may first do over old files."""
        fill = ["dd", "if=/dev/zero", f"of={ballast}", "bs=1M", "oflag=append", "conv=notrunc"]
        subprocess.run(fill, check=False, stderr=subprocess.DEVNULL)
        with suppress(psycopg.OperationalError), psycopg.connect(self.postgres.url, autocommit=True) as database:
            for _ in range(DISK_MEGABYTES):
                database.execute("SELECT pg_logical_emit_message(false, 'the storm', repeat('x', 1000000))")
        return not self.postgres.process.alive()

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """A command of Python beside the servers."""
        command = [sys.executable, *words]
        return subprocess.run(command, env=self.environment, cwd=ROOT, capture_output=True, text=True, check=False)

    @contextmanager
    def redis_hung(self) -> Iterator[None]:
        """It takes connections, and answers nobody."""
        pid = self.redis.process.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def log(self) -> str:
        """PostgreSQL's."""
        return self.postgres.log.read_text(errors="replace")


@contextmanager
def small_disk(folder: Path) -> Iterator[Path | None]:
    """The folder lies on a disk of its own, which can be filled; nothing where we may not mount one."""
    options = f"size={DISK_MEGABYTES}m,mode=711"
    mounting: list[Any] = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder]
    if os.geteuid() or subprocess.run(mounting, check=False, capture_output=True).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def product(folder: Path, small_disk: Path | None = None) -> Iterator[Product]:
    """PostgreSQL runs, the others are made but not started; at the end all are gone."""
    account = postgres_account(folder)
    postgres = Postgres(postgres_home(folder, account), account, folder / "postgres.log", throwaway=False)
    redis = Redis(folder / "redis", folder / "redis.log", throwaway=True)
    ours = {"DATABASE_URL": postgres.url, "REDIS_URL": redis.url, "VAR_DIR": str(folder)}
    environment = {**os.environ, **ours, "SECRET_KEY": settings.SECRET_KEY, "PYTHONUNBUFFERED": "1"}
    webs = tuple(Server(WEB, environment, folder / f"web-{number}.log", free_port()) for number in (1, 2))
    light = Server(LIGHT, environment, folder / "light.log")
    (folder / "static").mkdir()
    try:
        postgres.start()
        redis.start()
        yield Product(postgres, redis, environment, webs, light, small_disk)
    finally:
        for server in (*webs, light):
            server.kill()
        redis.stop()
        postgres.stop()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def tokens(product: Product, *, annotators: int, tasks: int) -> list[str]:
    """Of a new crew, in a new project of so many tasks; the last one is their manager's."""
    done = product.run("-m", "tests.storm.preparing", str(annotators), str(tasks))
    assert done.returncode == 0, done.stderr
    lines: list[str] = json.loads(done.stdout)
    return lines
