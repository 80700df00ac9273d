"""PostgreSQL 18 by the wheel's `initdb` and `postgres`, reached through a Unix socket."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import psycopg

from annotator.launch import child_processes
from annotator.launch.embedded.accounts import (
    Account,
    as_account,
    make_private,
    postgres_programs,
    private_socket_folder,
)
from annotator.launch.embedded.process import Process, ServiceFailed, last_words

# A socket's path has 108 bytes in the kernel, the last one 0.
_LONGEST_SOCKET_PATH = 107
_START_SECONDS = 60
_SETTINGS = ("listen_addresses=", "unix_socket_permissions=0700", "max_connections=200", "jit=off")
_RULES, _NAMES = "who-may-enter.conf", "who-is-who.conf"
# Nothing of a throwaway cluster has to survive a power cut.
_NOT_DURABLE = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
_MEGABYTE = 1 << 20
_MEMORY_LIMIT = Path("/sys/fs/cgroup/memory.max")


def fitting_settings(memory: int, free_disk: int) -> tuple[str, str]:
    """Returns how much PostgreSQL keeps in memory and how long its log may become, from bytes of memory and free disk.

    PostgreSQL's own defaults suit the smallest machines: imports then wait for pages that are written to make room, and
    for whole pages in the log after each of many checkpoints.
    """
    buffers = min(max(memory // 32, 128 * _MEGABYTE), 1024 * _MEGABYTE)
    log = min(max(free_disk // 20, 1024 * _MEGABYTE), 4096 * _MEGABYTE)
    return f"shared_buffers={buffers // _MEGABYTE}MB", f"max_wal_size={log // _MEGABYTE}MB"


def memory_bytes() -> int:
    """Returns the machine's memory, or what a container may use of it."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        return min(machine, int(_MEMORY_LIMIT.read_text()))
    except (OSError, ValueError):  # there is no such limit, or it is "max"
        return machine


@dataclass
class Postgres:
    """A cluster in `home`, whose socket only its own account (and root) can open."""

    home: Path
    account: Account | None
    log: Path
    throwaway: bool
    name: str = "postgres"
    process: Process = field(init=False)
    programs: Path = field(init=False)
    sockets: Path = field(init=False)

    def __post_init__(self) -> None:
        make_private(self.home, self.account)
        self.process = Process("PostgreSQL", self.log, self.home / "data")
        self.programs = postgres_programs(self.home, self.account)
        short = len(bytes(self.home / ".s.PGSQL.5432")) <= _LONGEST_SOCKET_PATH
        self.sockets = self.home if short else private_socket_folder(self.account)

    @property
    def url(self) -> str:
        return f"postgresql://rewardloop@/rewardloop?host={quote(str(self.sockets), safe='')}"

    def start(self) -> None:
        if not self.process.directory.exists():
            self._make_cluster()
        self.relaunch()
        self._wait()

    def _admit_ourselves_alone(self) -> None:
        """Lets whoever runs us log in by the socket, and nobody else: no other program of PostgreSQL's account either.

        It writes the rules at every start, so that they hold for clusters that once trusted everybody.
        """
        user = pwd.getpwuid(os.geteuid()).pw_name
        for file, line in ((_RULES, "local all all peer map=ours"), (_NAMES, f'ours "{user}" rewardloop')):
            path = self.home / file
            path.write_text(f"{line}\n")
            path.chmod(0o644)  # for PostgreSQL to read; nobody else enters the folder

    def relaunch(self) -> None:
        """Starts the program on the data that is there, and does not wait: whoever needs it tries until it answers."""
        self.process.end_predecessor("postgres")
        if sys.platform == "linux":
            # No server is left in there, but the process id in this file may be another program's by now: PostgreSQL
            # would take that one for a running server, and refuse to start.
            (self.process.directory / "postmaster.pid").unlink(missing_ok=True)
        self._admit_ourselves_alone()
        # SIGINT is the fast shutdown; at SIGTERM it would wait for everyone to hang up.
        self.process.launch(self._command(), dies_by=signal.SIGINT, account=self.account)

    def stop(self) -> None:
        self.process.stop(signal_number=signal.SIGINT, patience=30)
        if self.sockets != self.home:
            shutil.rmtree(self.sockets, ignore_errors=True)

    def _command(self) -> list[str]:
        files = (f"hba_file={self.home / _RULES}", f"ident_file={self.home / _NAMES}")
        settings = [*_SETTINGS, *files, f"unix_socket_directories={self.sockets}"]
        settings += (
            _NOT_DURABLE if self.throwaway else fitting_settings(memory_bytes(), shutil.disk_usage(self.home).free)
        )
        options = [word for setting in settings for word in ("-c", setting)]
        return [str(self.programs / "postgres"), "-D", str(self.process.directory), *options]

    def _make_cluster(self) -> None:
        """Runs `initdb` under another name, then renames the folder: a cluster that is there is a whole one."""
        unfinished = self.home / "data.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        command = [str(self.programs / "initdb"), "-D", str(unfinished), "-U", "rewardloop", "--auth=trust"]
        command += ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        command += ["--no-sync"] if self.throwaway else []
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=self.home,
            preexec_fn=child_processes.die_with_parent(signal.SIGKILL),
            **as_account(self.account),
        )
        if done.returncode:
            raise ServiceFailed(f"PostgreSQL could not make its files in {self.home}: {last_words(done.stdout)}")
        unfinished.rename(self.process.directory)

    def _wait(self) -> None:
        """Waits until the server answers, and makes our database if there is none."""
        address = f"postgresql://rewardloop@/postgres?host={quote(str(self.sockets), safe='')}"
        deadline = time.monotonic() + _START_SECONDS
        while True:
            self.process.check_alive()
            # Autocommit, as PostgreSQL makes no database within a transaction.
            with suppress(psycopg.OperationalError), psycopg.connect(address, autocommit=True) as server:
                if not server.execute("SELECT FROM pg_database WHERE datname = 'rewardloop'").fetchall():
                    server.execute("CREATE DATABASE rewardloop")
                return
            if time.monotonic() > deadline:
                raise ServiceFailed(f"PostgreSQL does not answer after {_START_SECONDS} s (its log is {self.log})")
            time.sleep(0.03)
