"""A real PostgreSQL and a real Redis, started from the programs in their wheels.

`services` starts both for `make run` and the tests; `python -m annotator.launch.embedded COMMAND ...` runs one command
beside a throwaway pair. DATABASE_URL and REDIS_URL, where set, replace either server.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from annotator.launch.child_processes import ServiceFailed
from annotator.launch.embedded.broker import Redis
from annotator.launch.embedded.postgres import AccountRefused, Postgres, postgres_account, postgres_home


@dataclass(frozen=True)
class Services:
    """The two addresses, and those of the servers behind them that we started ourselves."""

    database_url: str
    redis_url: str
    servers: tuple[Postgres | Redis, ...]

    @property
    def environment(self) -> dict[str, str]:
        addresses = {"DATABASE_URL": self.database_url, "REDIS_URL": self.redis_url}
        home = next((server.home for server in self.servers if isinstance(server, Postgres)), None)
        return addresses | ({"DATABASE_DIR": str(home)} if home else {})


@contextmanager
def services(var_dir: Path, *, throwaway: bool = False) -> Iterator[Services]:
    """Runs both servers with their data under `var_dir`; a throwaway pair is faster and leaves no data behind.

    Raises:
        ServiceFailed: a server does not start.
        AccountRefused: there is no account or folder that PostgreSQL could use.
    """
    var_dir = var_dir.resolve()
    database_url, redis_url = os.environ.get("DATABASE_URL"), os.environ.get("REDIS_URL")
    servers: list[Postgres | Redis] = []
    with ExitStack() as stack:
        if not database_url:
            var_dir.mkdir(parents=True, exist_ok=True)
            account = postgres_account(var_dir)
            log = var_dir / "logs" / "postgres.log"
            postgres = Postgres(postgres_home(var_dir, account), account, log, throwaway)
            if throwaway:
                # The home may lie elsewhere than `var_dir`, whose owner removes only that. It goes after the stop.
                stack.callback(shutil.rmtree, postgres.home, ignore_errors=True)
            servers.append(_started(postgres, stack))
            database_url = postgres.url
        if not redis_url:
            broker = Redis(var_dir / "redis", var_dir / "logs" / "redis.log", throwaway)
            servers.append(_started(broker, stack))
            redis_url = broker.url
        yield Services(database_url, redis_url, tuple(servers))


def _started(server: Postgres | Redis, stack: ExitStack) -> Postgres | Redis:
    stack.callback(server.stop)  # first: a server that fails half-way through its start is stopped as well
    server.start()
    return server
