"""Says what there is to learn from: labels in force, and preferences or rankings of tasks without labels."""

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from annotator.models import Label, Project, Response, Task
from annotator.refusals import Refusal

AGREED = Q(task__consensus__preference__isnull=False) | (
    Q(task__consensus__isnull=False) & ~Q(task__consensus__pairs=[])
)
"""Selects responses of tasks where people agree on a preference, or on the order of any two responses."""

_IMPORTED = Q(task__imported_preference__range=(-3, 3))


class NotEnoughLabels(Refusal):
    """There is nothing to learn from, or nothing to judge a model by."""

    code = "not_enough_labels"


def has_answers(project: Project) -> bool:
    """Returns whether there is anything to learn from: a label in force, or a preference."""
    if Label.objects.for_project(project.pk).are_in_force():
        return True
    preferred = preferred_alone(project)
    # Two reads, as each has an index: one for both would look at every task of a project without answers.
    agreed = preferred.filter(AGREED, task__consensus__project=project)
    return preferred.filter(_IMPORTED).union(agreed).exists()


def require_answers(project: Project) -> None:
    """Raises NotEnoughLabels where there is nothing to learn from; it reads one label at most."""
    if not has_answers(project):
        text = _("There are no labels and no preferences in %(project)s yet. Rate tasks, or import some.")
        raise NotEnoughLabels(text % {"project": project.name})


def preferred_alone(project: Project) -> QuerySet[Response]:
    """Returns the responses of tasks with a preference or a ranking in force and no label; dropped tasks have none."""
    labels = Label.objects.in_force().filter(response__task=OuterRef("task"))
    agreed = Q(task__consensus__isnull=True) | Q(task__consensus__drop_reason="")
    tasks = Response.objects.filter(task__project=project, task__state__in=[Task.State.OPEN, Task.State.COMPLETE])
    return tasks.filter(agreed & (_IMPORTED | AGREED)).exclude(Exists(labels))
