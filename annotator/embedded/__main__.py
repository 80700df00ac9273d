"""Runs one command beside a throwaway PostgreSQL and Redis, and ends with its exit code."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from annotator.embedded import AccountRefused, ServiceFailed, services


def main(command: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="rewardloop-") as folder:
        Path(folder).chmod(0o711)  # ours: PostgreSQL's account has to pass through
        try:
            with services(Path(folder), throwaway=True) as started:
                return subprocess.run(command, env={**os.environ, **started.environment}, check=False).returncode
        except (ServiceFailed, AccountRefused) as refusal:
            print(refusal, file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
