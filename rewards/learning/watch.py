"""A run never outlives who started it: an orphan would hold the GPU. SIGTERM ends it by a code of its own."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from types import FrameType

TERMINATED = 143
ORPHANED = 144


def end_on_sigterm() -> None:
    signal.signal(signal.SIGTERM, _end)


def end_with_parent(interval: float = 1.0) -> None:
    """Ends this process at once when its parent is no longer the one it had when this was called."""
    threading.Thread(target=_watch, args=(os.getppid(), interval), daemon=True, name="parent-watch").start()


def _watch(parent: int, interval: float) -> None:
    while os.getppid() == parent:
        time.sleep(interval)
    # From a thread only this ends the process; directories appear whole or not at all, so nothing is left half-written.
    os._exit(ORPHANED)


def _end(signum: int, frame: FrameType | None) -> None:
    sys.exit(TERMINATED)
