"""Looking into annotators' work in a process of its own: what it takes in memory goes back when it ends."""

import subprocess
import sys
from datetime import datetime

from django.conf import settings

from annotator.models import Project
from annotator.quality.assessing import alone

PATIENCE_SECONDS = 600


def assess_apart(project: Project, *, now: datetime) -> int:
    """Returns how many annotators there are results of; it takes its own time, a little after ours.

    Where a process is at it already no other is started: one that takes long must not have the next ones wait with it.

    Raises:
        subprocess.SubprocessError: the process failed, as the log says, or took too long.
    """
    command = [sys.executable, "manage.py", "quality", project.slug, "--background"]
    with alone(project, at="quality apart") as is_alone:
        if not is_alone:
            return 0
        subprocess.run(command, cwd=settings.BASE_DIR, stdin=subprocess.DEVNULL, check=True, timeout=PATIENCE_SECONDS)
        return project.rater_qualities.count()
