"""Runs one command beside a throwaway PostgreSQL and Redis, and ends with its exit code.

With --kept before the command they are the servers of VAR_DIR, which `make run` would start: for a restore while the
product is stopped.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from annotator.launch.embedded import AccountRefused, ServiceFailed, services
from annotator.launch.install import CannotInstall, held
from annotator.launch.run import ROOT, keep_private

KEPT = "--kept"


def main(command: list[str]) -> int:
    try:
        return beside_kept(command[1:]) if command[:1] == [KEPT] else beside_throwaway(command)
    except (ServiceFailed, AccountRefused, CannotInstall) as refusal:
        print(refusal, file=sys.stderr)
        return 1


def beside_throwaway(command: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="rewardloop-") as folder:
        Path(folder).chmod(0o711)  # PostgreSQL's account has to pass through
        with services(Path(folder), throwaway=True) as started:
            return subprocess.run(command, env={**os.environ, **started.environment}, check=False).returncode


def beside_kept(command: list[str]) -> int:
    var_dir = Path(os.environ.get("VAR_DIR", ROOT / "var")).resolve()
    # The lock refuses while `make run` has the same folder: two servers on one cluster would spoil it.
    with held(var_dir):
        keep_private(var_dir)
        with services(var_dir) as started:
            return subprocess.run(command, env={**os.environ, **started.environment}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
