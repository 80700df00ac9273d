"""How a run ends: never after who started it, as an orphan would hold the GPU; by SIGTERM with a code of its own; and
as one of several processes without the interpreter's farewell."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from types import FrameType
from typing import NoReturn

TERMINATED = 143
ORPHANED = 144


def end_on_sigterm() -> None:
    signal.signal(signal.SIGTERM, _end)


def end_with_parent(interval: float = 1.0) -> None:
    """Ends this process at once when its parent is no longer the one it had when this was called."""
    threading.Thread(target=_watch, args=(os.getppid(), interval), daemon=True, name="parent-watch").start()


def end(code: int) -> NoReturn:
    """Ends this process with the code, when all of its work is written.

    A process that torchrun started ends at once. Tearing its interpreter down aborts now and then (`terminate called
    without an active exception`, as a native thread of gloo or of the backward pass still wants the interpreter), and
    torchrun would then fail a run that has succeeded.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        sys.exit(code)
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _watch(parent: int, interval: float) -> None:
    while os.getppid() == parent:
        time.sleep(interval)
    # From a thread only this ends the process; directories appear whole or not at all, so nothing is left half-written.
    os._exit(ORPHANED)


def _end(signum: int, frame: FrameType | None) -> None:
    sys.exit(TERMINATED)
