"""Runs the operator's launcher (TRAIN_LAUNCHER) as a child, and ends it when the worker that wanted it has died.

A trainer of ours ends with its parent by itself. Another program, such as srun, would train on, while the next worker
starts the run again in the same folder.
"""

import os
import signal
import subprocess
import sys

LOOK_SECONDS = 1.0
GRACE_SECONDS = 10
ORPHANED = 144


def main(words: list[str]) -> int:
    """Starts the program with its arguments and returns its exit code; ends by the signal that has ended it."""
    parent = os.getppid()
    # Whoever stops the run signals the whole group, so the launcher has the signal already. This process waits for it.
    # Not SIG_IGN: the launcher would inherit that.
    signal.signal(signal.SIGTERM, lambda signum, frame: None)
    process = subprocess.Popen(words)
    while True:
        try:
            code = process.wait(timeout=LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            if os.getppid() != parent:
                _end(process)
                return ORPHANED
        else:
            break
    if code < 0:
        if -code == signal.SIGTERM:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(timeout=GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
