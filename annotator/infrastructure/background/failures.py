"""Runs periodic work for each project separately, and records a failure in a row that people can see.

The row says what fails, in which project, since when and how often. It is deleted when the work succeeds again. The
failure of one project does not stop the work on the others. Work that fails because its project is being deleted
meanwhile has not failed.
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from operator import or_

from django.db.models import F, Q

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.storage.hidden_paths import without_places
from annotator.models import BackgroundFailure, Project

LONGEST_ERROR = 500
# Errors may quote a URL or a connection string with a password in it.
_SECRETS = re.compile(r"//[^/@\s]*@|(?:password|passwd|token|secret)\s*[=:]\s*\S+", re.IGNORECASE)
_log = logging.getLogger(__name__)


def each_project(task: str, projects: Iterable[Project], work: Callable[[Project], int | None]) -> int:
    """Runs `work` for every project, even if it fails for some; returns the sum of its results.

    Earlier failures of the task are deleted for all projects in which it did not fail now. That includes projects that
    are not among `projects` any more, as there is no work left that could fail. Where `work` returns None, it has not
    been tried, and what failed before stays.
    """
    done, kept = 0, []
    with _raised(task, None):
        for project in projects:
            try:
                if (result := work(project)) is None:
                    kept.append(Q(project=project))
                else:
                    done += result
            except Exception as error:  # noqa: BLE001  any failure of one project is recorded, and the others go on
                if _is_going(project):
                    continue
                note(task, project, error)
                kept.append(Q(project=project))
    earlier = BackgroundFailure.objects.filter(task=task)
    (earlier.exclude(reduce(or_, kept)) if kept else earlier).delete()
    return done


@contextmanager
def as_whole(task: str, project: Project | None = None) -> Iterator[None]:
    """Records and re-raises the failure of work that concerns a single project, or no project at all."""
    with _raised(task, project):
        yield
    BackgroundFailure.objects.filter(task=task, project=project).delete()


@contextmanager
def _raised(task: str, project: Project | None) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if project and _is_going(project):
            return
        note(task, project, error)
        raise


def _is_going(project: Project) -> bool:
    """Returns whether somebody has deleted the project since it was read: what the work writes may refer to nothing."""
    return not Project.objects.filter(pk=project.pk, deleted_at=project.deleted_at).exists()


def note(task: str, project: Project | None, error: Exception) -> None:
    """Records the failure in a new row, or counts it in the existing one. Raises DatabaseError."""
    _log.error("%s failed%s", task, f" in {project.slug}" if project else "", exc_info=error)
    now, text = database_now(), safe_text(error)
    row, is_new = BackgroundFailure.objects.get_or_create(
        task=task, project=project, defaults={"first_at": now, "last_at": now, "error": text}
    )
    if not is_new:
        BackgroundFailure.objects.filter(pk=row.pk).update(last_at=now, error=text, times=F("times") + 1)


def safe_text(error: Exception) -> str:
    """Returns an error in a form that people may read: without passwords, paths of this machine, or contents of rows.

    Only the first line is kept, because PostgreSQL quotes values of the row below it.
    """
    line = (str(error).strip().splitlines() or [""])[0]
    line = _SECRETS.sub("...", without_places(line))
    return f"{type(error).__name__}: {line}"[:LONGEST_ERROR] if line else type(error).__name__
