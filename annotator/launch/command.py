"""`rewardloop COMMAND ...`: the product where it is installed as a package.

State lies in `var/` of the folder in which the command is given, or in VAR_DIR.
"""

import os
import sys
from pathlib import Path

from annotator.version import VERSION

PROGRAMS = {
    "run": ("annotator.launch.run", "everything on this machine, until Ctrl-C"),
    "manage": ("annotator.launch.manage", "Django's commands, and ours: import_tasks, export_labels, ..."),
    "prepare": ("annotator.launch.prepare", "brings the database and the static files up to date"),
    "serve": ("annotator.launch.webserver", "the web alone"),
    "worker": ("celery", "one of the workers: -Q light, train or score, as for `celery worker`"),
    "beat": ("celery", "sends what is due at intervals"),
    "learning": ("rewards.learning", "the learning core: train, evaluate, score or align, and a directory"),
}


def main() -> int:
    """Answers by itself, or replaces this process by the program that the command names."""
    command, *arguments = sys.argv[1:] or ["--help"]
    if command == "--version":
        print(f"rewardloop {VERSION}")
        return 0
    if command in PROGRAMS:
        os.environ.setdefault("VAR_DIR", str(Path.cwd() / "var"))
        os.execv(sys.executable, command_line(command, arguments))
    asked = command in {"--help", "-h"}
    print(usage(), file=sys.stdout if asked else sys.stderr)
    return 0 if asked else 2


def usage() -> str:
    lines = [f"  {name:<10}{summary}" for name, (_, summary) in PROGRAMS.items()]
    return "\n".join(["usage: rewardloop COMMAND ...", "", *lines])


def command_line(command: str, arguments: list[str]) -> list[str]:
    """Returns the command line of a program."""
    program, _ = PROGRAMS[command]
    celery = ["-A", "annotator", command] if program == "celery" else []
    # -P keeps the current folder off the import path: a module there, such as django.py, would stand in for ours.
    return [sys.executable, "-P", "-m", program, *celery, *arguments]
