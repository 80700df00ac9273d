"""Assesses annotators' work in a process of its own, so that the memory it takes is returned when it ends."""

import subprocess
import sys
from datetime import datetime

from django.conf import settings

from annotator.db import locks
from annotator.models import Project

PATIENCE_SECONDS = 600


class AssessmentFailed(Exception):
    """The process that assesses a project's annotators failed; the message is the last line that it wrote."""


def assess_apart(project: Project, *, now: datetime) -> int:
    """Assesses the project in a process of its own; returns for how many annotators there are results.

    `now` is not used: the process reads the time itself, a little later. While one process assesses the project no
    other is started, because those that come after a slow one would pile up behind it.

    Raises:
        AssessmentFailed: the process failed, or took longer than PATIENCE_SECONDS.
    """
    # The slug comes after "--", as it may begin with a hyphen and would be read as an option.
    command = [sys.executable, "manage.py", "quality", "--background", "--", project.slug]
    with locks.session_lock("quality apart", project.pk) as is_alone:
        if not is_alone:
            return 0
        try:
            ended = subprocess.run(
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
        sys.stderr.write(ended.stderr)
        if ended.returncode:
            lines = ended.stderr.strip().splitlines()
            raise AssessmentFailed(lines[-1] if lines else f"it ended with code {ended.returncode}")
        return project.rater_qualities.count()
