"""Looking into annotators' work in a process of its own: what it takes in memory goes back when it ends."""

import subprocess
import sys
from datetime import datetime

from django.conf import settings

from annotator.db import locks
from annotator.models import Project

PATIENCE_SECONDS = 600


class AssessmentFailed(Exception):
    """The process that looks into a project's annotators; the message is its last word."""


def assess_apart(project: Project, *, now: datetime) -> int:
    """Returns how many annotators there are results of; it takes its own time, a little after ours.

    Where a process is at it already no other is started: one that takes long must not have the next ones wait with it.

    Raises:
        AssessmentFailed: the process failed or took too long.
    """
    # A slug may begin with a hyphen, and is no option for that.
    command = [sys.executable, "manage.py", "quality", "--background", "--", project.slug]
    with locks.session_lock("quality apart", project.pk) as is_alone:
        if not is_alone:
            return 0
        try:
            done = subprocess.run(
                command,
                cwd=settings.BASE_DIR,
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                check=False,
                timeout=PATIENCE_SECONDS,
            )
        except subprocess.TimeoutExpired as late:
            raise AssessmentFailed(f"it took longer than {PATIENCE_SECONDS} s") from late
        sys.stderr.write(done.stderr)
        if done.returncode:
            words = done.stderr.strip().splitlines()
            raise AssessmentFailed(words[-1] if words else f"it ended with code {done.returncode}")
        return project.rater_qualities.count()
