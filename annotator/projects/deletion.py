"""Deletes a project with all that is in it. It has to be archived before, and its slug to be typed.

The row is the truth: once `deleted_at` is set, nobody reaches the project. A large one goes in portions, by the light
worker; one that was interrupted is found again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from annotator import audit
from annotator.background import failures, messages
from annotator.db import locks
from annotator.db.retries import in_transaction
from annotator.models import Annotation, Project, Task
from annotator.projects.staff import follow_roles
from annotator.refusals import Refusal

AT_ONCE = 200
AT_THE_DOOR = 1000
"""Tasks that the caller waits for; the light worker deletes more than that."""


@dataclass(frozen=True)
class Contents:
    """What would go with a project."""

    tasks: int
    annotations: int
    models: int

    def __str__(self) -> str:
        counts = ((self.tasks, "task"), (self.annotations, "annotation"), (self.models, "reward model"))
        tasks, annotations, models = (f"{n:,} {noun}{'' if n == 1 else 's'}" for n, noun in counts)
        return f"{tasks}, {annotations} and {models}"


class NotArchived(Refusal):
    """Only what is archived can be deleted."""

    code = "not_archived"


class NotConfirmed(Refusal):
    """The slug was not typed, or another one."""

    code = "not_confirmed"


def contents(project: Project) -> Contents:
    annotations = Annotation.objects.current().for_project(project.pk)
    return Contents(project.tasks.count(), annotations.count(), project.reward_models.count())


def delete(project: Project, *, confirm: str, now: datetime) -> bool:
    """Deletes the project; returns whether it is gone, or goes by and by, in the background.

    Raises:
        NotArchived, NotConfirmed: each says what would go.
    """
    would_go = contents(project)
    if project.archived_at is None:
        raise NotArchived(f"{project.name} has {would_go}. Archive it first. A deleted project cannot be brought back.")
    if confirm != project.slug:
        raise NotConfirmed(f"This deletes {would_go} permanently. To confirm, give the project's slug, {project.slug}.")
    _mark(project, would_go, now=now)
    if would_go.tasks <= AT_THE_DOOR:
        finish(project.pk)
        return True
    messages.send_on_commit("annotator.tasks.finish_deletion", [project.pk])
    return False


@transaction.atomic
def _mark(project: Project, would_go: Contents, *, now: datetime) -> None:
    """From here on nobody reaches the project. Of two who delete it one is recorded."""
    archived = Project.objects.standing().filter(pk=project.pk, archived_at__isnull=False)
    if archived.update(deleted_at=now):
        audit.record("project.deleted", f"project {project.slug}", project=project, **vars(would_go))
    elif Project.objects.standing().filter(pk=project.pk).exists():
        raise NotArchived(f"{project.name} has just been brought back.")


# Portion by portion ----------------------------------------------------------------------------------------


def finish(project_id: int) -> int:
    """Deletes what is left of a project that is to go; returns how many tasks. Twice does no harm."""
    with locks.session_lock("deletion", project_id) as is_alone:
        project = Project.objects.filter(pk=project_id, deleted_at__isnull=False).first() if is_alone else None
        if project is None:
            return 0
        deleted = sum(_delete_some(numbers) for numbers in _portions(project))
        _delete_rest(project)
        return deleted


def finish_all() -> int:
    """Finishes every deletion of which something is left; returns how many tasks went."""
    unfinished = Project.objects.filter(deleted_at__isnull=False)
    return failures.each_project("finish_deletions", unfinished, lambda project: finish(project.pk))


def _portions(project: Project) -> Iterator[list[int]]:
    tasks = Task.objects.filter(project=project).order_by("pk").values_list("pk", flat=True)
    while numbers := list(tasks[:AT_ONCE]):
        yield numbers


@in_transaction
def _delete_some(numbers: list[int]) -> int:
    # In the order in which every other stage locks tasks.
    list(Task.objects.filter(pk__in=numbers).order_by("pk").select_for_update().values_list("pk"))
    Task.objects.filter(pk__in=numbers).delete()
    return len(numbers)


@in_transaction
def _delete_rest(project: Project) -> None:
    """The project itself, with what belongs to no task. Its people may manage nothing any more."""
    people = [member.user for member in project.memberships.select_related("user")]
    project.delete()
    for user in people:
        follow_roles(user)
