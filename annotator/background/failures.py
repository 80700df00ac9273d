"""Periodic work treats each project by itself: a failure is a row that people see, and nobody else's trouble.

The row says what fails, where, since when and how often, and goes when the work succeeds again.
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from operator import or_

from django.db.models import F, Q

from annotator.db.clock import database_now
from annotator.models import BackgroundFailure, Project
from annotator.storage.hidden_paths import without_places

LONGEST_ERROR = 500
_SECRETS = re.compile(r"//[^/@\s]*@|(?:password|passwd|token|secret)\s*[=:]\s*\S+", re.IGNORECASE)
_log = logging.getLogger(__name__)


def each_project(task: str, projects: Iterable[Project], work: Callable[[Project], int]) -> int:
    """Does the work in every project, whatever becomes of the others; returns the sum of what it returns.

    A project that is not among them any more has nothing left that could fail.
    """
    done, failed = 0, []
    with _raised(task, None):
        for project in projects:
            try:
                done += work(project)
            except Exception as error:  # noqa: BLE001  the door of the work on one project
                note(task, project, error)
                failed.append(Q(project=project))
    others = BackgroundFailure.objects.filter(task=task)
    (others.exclude(reduce(or_, failed)) if failed else others).delete()
    return done


@contextmanager
def as_whole(task: str, project: Project | None = None) -> Iterator[None]:
    """For what is one piece, or concerns one project: its failure becomes a row, and is raised."""
    with _raised(task, project):
        yield
    BackgroundFailure.objects.filter(task=task, project=project).delete()


@contextmanager
def _raised(task: str, project: Project | None) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        note(task, project, error)
        raise


def note(task: str, project: Project | None, error: Exception) -> None:
    """Writes the failure down, in a new row or once more in the one that is there. Raises DatabaseError."""
    _log.error("%s failed%s", task, f" in {project.slug}" if project else "", exc_info=error)
    now, text = database_now(), safe_text(error)
    row, is_new = BackgroundFailure.objects.get_or_create(
        task=task, project=project, defaults={"first_at": now, "last_at": now, "error": text}
    )
    if not is_new:
        BackgroundFailure.objects.filter(pk=row.pk).update(last_at=now, error=text, times=F("times") + 1)


def safe_text(error: Exception) -> str:
    """An error as people may read it: its first line, without passwords, paths of this machine, or rows' contents.

    What PostgreSQL adds below the first line are values of the row.
    """
    line = (str(error).strip().splitlines() or [""])[0]
    line = _SECRETS.sub("...", without_places(line))
    return f"{type(error).__name__}: {line}"[:LONGEST_ERROR] if line else type(error).__name__
