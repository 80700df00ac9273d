"""Python environments of their own for other people's packages, which pin other versions of what ours pins.

They are made where READERS names a folder to keep them in: installing them takes minutes and a network.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

needs_readers = pytest.mark.skipif(
    not os.environ.get("READERS"), reason="READERS=FOLDER makes environments for other people's packages there"
)


def python_with(name: str, *packages: str, alone: str = "", without: Sequence[str] = ()) -> Path:
    """The interpreter of the environment of this name, which is made where it is missing.

    `alone` is a package whose own requirements are left out; packages `without` which the environment does are removed.
    """
    folder = Path(os.environ["READERS"], name)
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [str(python), "-m", "pip"]
        subprocess.run([*pip, "install", "--quiet", *packages], check=True)
        if alone:
            subprocess.run([*pip, "install", "--quiet", "--no-deps", alone], check=True)
        if without:
            subprocess.run([*pip, "uninstall", "--quiet", "--yes", *without], check=True)
    return python


def trl() -> Path:
    return python_with("trl", "torch==2.13.0", "trl", "requests")


def said_by(python: Path, program: str, *arguments: object, **variables: str) -> str:
    """What a program prints last, which runs in that environment."""
    done = subprocess.run(
        [python, "-c", program, *map(str, arguments)],
        env={"PATH": os.environ["PATH"], "HF_HUB_OFFLINE": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    return done.stdout.strip().splitlines()[-1]
