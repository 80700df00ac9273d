"""The web as `make run` starts it, over a PostgreSQL and a Redis of its own that keep every promise to the disk."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from annotator import children
from annotator.bootstrap import ROOT
from annotator.embedded import services
from annotator.running import COMMANDS, process_environment

PORT = 8930
PATIENCE_SECONDS = 60


@contextmanager
def database() -> Iterator[Path]:
    """Servers in a folder that goes afterwards, the environment set, Django set up and migrated."""
    with tempfile.TemporaryDirectory(prefix="rewardloop-bench-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # ours: PostgreSQL's account has to pass through
        with services(folder) as started:
            os.environ.update(process_environment(started, folder) | {"SECRET_KEY": "bench-" * 10, "PORT": str(PORT)})
            os.environ.setdefault("DJANGO_SETTINGS_MODULE", "annotator.settings")
            from annotator.preparing import main as prepare  # after the environment: it reads the settings

            prepare([])
            yield folder


@contextmanager
def web() -> Iterator[str]:
    """The web by the line of `make run`; yields its address."""
    _python, *words = next(each.line for each in COMMANDS if each.name == "web").split()
    # Whoever ends the benchmark ends the web with it.
    ended_with_us = children.die_with_parent()
    with subprocess.Popen(
        [sys.executable, *words], cwd=ROOT, start_new_session=True, preexec_fn=ended_with_us
    ) as server:
        address = f"http://127.0.0.1:{PORT}"
        try:
            _wait_for(f"{address}/api/v1/health/live/")
            yield address
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait(PATIENCE_SECONDS)


def _wait_for(address: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            urllib.request.urlopen(address, timeout=3).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return
