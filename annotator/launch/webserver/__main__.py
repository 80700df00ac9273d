"""`python -m annotator.launch.webserver`: serves on HOST and PORT by WEB_PROCESSES processes of WEB_THREADS threads."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any
from wsgiref.handlers import SimpleHandler

from django.conf import settings
from django.urls import get_resolver

from annotator.launch.webserver.processes import Processes, listening_socket
from annotator.launch.webserver.thread_pools import LIVE

MEMORY = Path("/dev/shm")
"""A folder in memory: a full disk would kill a process that counts in a file that it has mapped."""


@contextmanager
def shared_counts() -> Iterator[None]:
    """Gives the processes a folder for what /metrics adds up, where that is wanted."""
    if not os.environ.get("METRICS_TOKEN"):
        yield
        return
    place = MEMORY if MEMORY.is_dir() else Path(tempfile.gettempdir())
    for left in place.glob("rewardloop-metrics-*"):
        # Of a server that was killed, where the system says who lives.
        if Path("/proc/self").exists() and not Path(f"/proc/{left.name.split('-')[2]}").exists():
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"rewardloop-metrics-{os.getpid()}-", dir=place) as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        yield


def warm_up(application: Any) -> None:
    """Loads once what the first request of each process would load, before the processes are forked.

    The request for LIVE asks no database: a connection from before the forks would be shared by all processes.
    """
    _ = get_resolver().url_patterns
    server = {"SERVER_NAME": "localhost", "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1"}
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": LIVE, **server}
    SimpleHandler(BytesIO(), BytesIO(), sys.stderr, environ).run(application)


def main() -> int:
    with shared_counts():
        from annotator.wsgi import application  # noqa: PLC0415  it looks for the folder when it is imported

        warm_up(application)
        listener = listening_socket(os.environ.get("HOST", "127.0.0.1"), settings.PORT)
        return Processes(application, listener, number=settings.WEB_PROCESSES, threads=settings.WEB_THREADS).run()


if __name__ == "__main__":
    sys.exit(main())
