"""The programs of the server, which `rewardloop COMMAND ...` starts where the extra `server` is installed.

State lies in `var/` of the folder in which the command is given, or in VAR_DIR.
"""

import os
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path


@dataclass(frozen=True)
class Program:
    """A module that Python runs, what it is for, and the extras that bring what it needs."""

    module: str
    summary: str
    extras: str = "server"
    needs: tuple[str, ...] = ("django", "celery")


PROGRAMS = {
    "run": Program("annotator.launch.run", "everything on this machine, until Ctrl-C", "server,embedded,learning"),
    "manage": Program("annotator.launch.manage", "Django's commands, and ours: import_tasks, export_labels, ..."),
    "prepare": Program("annotator.launch.prepare", "brings the database and the static files up to date"),
    "serve": Program("annotator.launch.webserver", "the web alone"),
    "worker": Program("celery", "one of the workers: -Q light, train or score, as for `celery worker`"),
    "beat": Program("celery", "sends what is due at intervals"),
    "learning": Program(
        "rewards.learning",
        "the learning core: train, evaluate, score or align, and a directory",
        "server,learning",
        ("numpy", "torch"),
    ),
}


def start(name: str, arguments: list[str]) -> int:
    """Replaces this process by the program; returns an exit code where that is not installed."""
    program = PROGRAMS[name]
    if all(find_spec(package) for package in program.needs):
        os.environ.setdefault("VAR_DIR", str(Path.cwd() / "var"))
        os.execv(sys.executable, command_line(name, arguments))
    wanted = f'pip install "rewardloop[{program.extras}]"'
    sys.stderr.write(f"rewardloop {name} belongs to the server, which is not installed: {wanted}\n")
    return 1


def command_line(name: str, arguments: list[str]) -> list[str]:
    """Returns the command line of a program."""
    module = PROGRAMS[name].module
    celery = ["-A", "annotator", name] if module == "celery" else []
    # -P keeps the current folder off the import path: a module there, such as django.py, would stand in for ours.
    return [sys.executable, "-P", "-m", module, *celery, *arguments]
