"""Real Celery worker processes over the tests' database, Redis and artifacts."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from django.conf import settings
from django.db import connection

from annotator.infrastructure.background import heartbeats, redis_client


def wait_for(condition: Callable[[], object], *, seconds: float = 60, what: str = "the condition") -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what} did not come in {seconds} s"
        time.sleep(0.1)


def environment(var_dir: Path, **extra: str) -> dict[str, str]:
    """What a process needs to work on the test database."""
    url = urlsplit(os.environ["DATABASE_URL"])
    name = connection.settings_dict["NAME"]
    return {
        **os.environ,
        "DATABASE_URL": urlunsplit(url._replace(path=f"/{name}")),
        "VAR_DIR": str(var_dir),
        "SECRET_KEY": "only-for-tests",
        "OMP_NUM_THREADS": "1",  # on cores that others use, torch's threads would spin for each other
        **extra,
    }


@contextmanager
def worker(queue: str, var_dir: Path, *, log: str = "", **extra: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A worker of the queue, listening; ended with its children at the end. Its log is named for the queue."""
    name = f"{queue}-{os.getpid()}-{time.monotonic_ns()}"
    command = [sys.executable, "-m", "celery", "-A", "annotator", "worker", "-Q", queue, "--pool", "solo", "-n", name]
    command += ["--loglevel", "INFO"]
    with (var_dir / f"{log or queue}.log").open("ab") as output:
        process = subprocess.Popen(
            command,
            env=environment(var_dir, **extra),
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd=settings.BASE_DIR,
        )
    try:
        wait_for(lambda: name in str(redis_client.connection().hkeys(heartbeats.KEY)), what=f"worker {queue}")
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        redis_client.connection().delete(heartbeats.KEY)
