"""Deletes a project with all that is in it. It must be archived first, and its slug or its name typed.

The row is the truth: once `deleted_at` is set, nobody can reach the project. The light worker deletes a large one in
portions; a deletion that was interrupted is found again.
"""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotator.infrastructure import audit, jobs
from annotator.infrastructure.background import messages
from annotator.infrastructure.db import locks
from annotator.infrastructure.db.retries import in_transaction
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.web.numbers import number
from annotator.managing.members import follow_roles
from annotator.models import Project, Tally, Task

AT_ONCE = 200
SYNC_LIMIT = 1000
"""The most tasks that the caller waits for; more are left to the light worker."""


@dataclass(frozen=True)
class Contents:
    """What would be deleted with a project."""

    tasks: int
    annotations: int
    models: int

    def __str__(self) -> str:
        counts = {
            "tasks": ngettext("%(number)s task", "%(number)s tasks", self.tasks) % {"number": number(self.tasks, 0)},
            "annotations": ngettext("%(number)s annotation", "%(number)s annotations", self.annotations)
            % {"number": number(self.annotations, 0)},
            "models": ngettext("%(number)s reward model", "%(number)s reward models", self.models)
            % {"number": number(self.models, 0)},
        }
        return _("%(tasks)s, %(annotations)s and %(models)s") % counts


class NotConfirmed(Refusal):
    """Neither the slug nor the name was typed."""

    code = "not_confirmed"


def contents(project: Project) -> Contents:
    # The tallies are kept up to date with every submission. Counting a million annotations would take seconds.
    annotations = sum(Tally.objects.filter(project=project).values_list("done", flat=True))
    return Contents(project.tasks.count(), annotations, project.reward_models.count())


def delete(project: Project, *, confirm: str, now: datetime) -> bool:
    """Deletes the project; returns True if it is gone, False if the light worker deletes it in the background.

    Raises:
        Refusal, NotConfirmed: the message says what would be deleted.
    """
    would_go = contents(project)
    if project.archived_at is None:
        text = _("%(project)s has %(contents)s. Archive it first. A deleted project cannot be brought back.")
        raise Refusal(text % {"project": project.name, "contents": would_go}, code="not_archived")
    if confirm not in (project.slug, project.name):
        text = _("This deletes %(contents)s permanently. To confirm, give the project's slug, %(slug)s.")
        raise NotConfirmed(text % {"contents": would_go, "slug": project.slug})
    _mark(project, would_go, now=now)
    if would_go.tasks <= SYNC_LIMIT:
        finish(project.pk)
        return True
    messages.send_on_commit("annotator.tasks.finish_deletions")
    return False


@transaction.atomic
def _mark(project: Project, would_go: Contents, *, now: datetime) -> None:
    """Marks the project as deleted, so that nobody can reach it from now on."""
    # A conditional UPDATE: one of two simultaneous deletions is recorded, and none overtakes a restore.
    archived = Project.objects.standing().filter(pk=project.pk, archived_at__isnull=False)
    if archived.update(deleted_at=now):
        audit.record("project.deleted", f"project {project.slug}", project=project, **vars(would_go))
    elif Project.objects.standing().filter(pk=project.pk).exists():
        raise Refusal(_("%(project)s has just been brought back.") % {"project": project.name}, code="not_archived")


# Portion by portion ----------------------------------------------------------------------------------------


def finish(project_id: int) -> int:
    """Deletes what is left of a project that is marked as deleted; returns how many tasks.

    Doing so twice is harmless.
    """
    # A session lock, as the work takes many transactions.
    with locks.session_lock("deletion", project_id) as is_alone:
        project = Project.objects.filter(pk=project_id, deleted_at__isnull=False).first() if is_alone else None
        if project is None:
            return 0
        deleted, tasks = 0, Task.objects.filter(project=project).order_by("pk").values_list("pk", flat=True)
        while numbers := list(tasks[:AT_ONCE]):
            deleted += _delete_some(numbers)
        _delete_rest(project)
        return deleted


def finish_all() -> int:
    """Finishes every deletion that was interrupted; returns how many tasks it deleted."""
    unfinished = Project.objects.filter(deleted_at__isnull=False)
    return jobs.finish_left("finish_deletions", unfinished, lambda project: finish(project.pk), project="pk")


@in_transaction
def _delete_some(numbers: list[int]) -> int:
    # DELETE alone would lock them in any order.
    Task.objects.locked(numbers)
    Task.objects.filter(pk__in=numbers).delete()
    return len(numbers)


@in_transaction
def _delete_rest(project: Project) -> None:
    """Deletes the project itself, with what belongs to no task."""
    # Read before the memberships are deleted: those who managed only this project lose their access to the admin.
    people = [member.user for member in project.memberships.select_related("user")]
    project.delete()
    for user in people:
        follow_roles(user)
