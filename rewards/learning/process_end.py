"""Ends a run: with its parent, as an orphan would hold the GPU, on SIGTERM with a code of its own, or when done.

A process that torchrun started ends without tearing down its interpreter.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from typing import NoReturn

TERMINATED = 143
ORPHANED = 144


def end_on_sigterm() -> None:
    """Makes SIGTERM end this process with the code TERMINATED."""
    # By an exception instead of the signal's default, so that the stage's `finally` and `with` blocks run.
    signal.signal(signal.SIGTERM, lambda signum, frame: sys.exit(TERMINATED))


def end_with_parent(interval: float = 1.0) -> None:
    """Ends this process with the code ORPHANED when its parent has died; looks every `interval` seconds."""
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
    # sys.exit would end this thread only. Directories appear whole or not at all, so nothing is left half-written.
    os._exit(ORPHANED)
