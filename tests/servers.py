"""The pytest plugin that starts PostgreSQL and Redis, before pytest-django reads the settings.

Loaded by `-p tests.servers`. The servers are thrown away at the end, and end with pytest even when it is killed.
With `-n` each of pytest-xdist's workers has a pair of its own, so nothing that one test does reaches another's.
"""

import atexit
import compileall
import gc
import os
import sys
import tempfile
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from annotator.launch import embedded
from annotator.launch.embedded import Postgres, Redis

ROOT = Path(__file__).parents[1]
PACKAGES = ("annotator", "rewardloop", "rewards")
_stack = ExitStack()
running: list[Postgres | Redis] = []
"""Those that we started ourselves, for a test that restarts one."""


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, None, None]:
    """A wrapper, because those run before pytest-django's own hook.

    What is imported and collected from here on stays: looking through it for garbage, again and again, took nearly half
    of the time. `pytest_collection_finish` goes back to that, for what comes later.
    """
    gc.disable()
    sys.dont_write_bytecode = False  # rewriting the assertions of all tests takes each worker seconds, every time
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the tests share the cores: threads would spin for each other
    if "PYTEST_XDIST_WORKER" not in os.environ:
        _compile()
    if _only_distributes(early_config):
        os.environ["PYTEST_PLUGINS"] = __name__  # a worker heeds `-p` too late
    else:
        _start()
    return (yield)


def _compile() -> None:
    """Once for all processes: with PYTHONDONTWRITEBYTECODE, each of the hundreds that tests start would do it again."""
    for package in PACKAGES:
        compileall.compile_dir(ROOT / package, quiet=2)


def _only_distributes(config: pytest.Config) -> bool:
    return bool(config.known_args_namespace.numprocesses) and "PYTEST_XDIST_WORKER" not in os.environ


def _start() -> None:
    folder = Path(_stack.enter_context(tempfile.TemporaryDirectory(prefix="rewardloop-tests-")))
    folder.chmod(0o711)  # ours: PostgreSQL's account has to pass through
    given = "DATABASE_URL" in os.environ
    try:
        started = _stack.enter_context(embedded.services(folder, throwaway=True))
    except (embedded.ServiceFailed, embedded.AccountRefused) as refusal:
        raise pytest.UsageError(str(refusal)) from refusal
    running.extend(started.servers)
    if not given:
        _leave_plans_alone(started.environment["DATABASE_URL"])
    os.environ.update({**started.environment, "VAR_DIR": str(folder)})
    atexit.register(_stack.close)


def _leave_plans_alone(url: str) -> None:
    """Autovacuum, seeing rows that no test commits, takes full tables for empty ones: a query then takes a minute."""
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("ALTER SYSTEM SET autovacuum = off")
        server.execute("SELECT pg_reload_conf()")


def pytest_collection_finish() -> None:
    gc.freeze()
    # Rarely: there is memory enough, and what a test leaves in cycles is gone at the latest when pytest ends.
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_unconfigure() -> None:
    _stack.close()
