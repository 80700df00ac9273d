"""Says what there is to learn from: labels in force, and preferences or rankings of tasks without labels."""

from django.utils.translation import gettext as _

from annotator.models import Label, Project
from annotator.models.in_force import AGREED, IMPORTED, compared_alone
from annotator.refusals import Refusal


def has_answers(project: Project) -> bool:
    """Returns whether there is anything to learn from: a label in force, or a preference."""
    if Label.objects.for_project(project.pk).are_in_force():
        return True
    preferred = compared_alone(project.tasks.all())
    # Two reads, as each has an index: one for both would look at every task of a project without answers.
    agreed = preferred.filter(AGREED, consensus__project=project)
    return preferred.filter(IMPORTED).union(agreed).exists()


def require_answers(project: Project) -> None:
    """Raises Refusal where there is nothing to learn from; it reads one label at most."""
    if not has_answers(project):
        text = _("There are no labels and no preferences in %(project)s yet. Rate tasks, or import some.")
        raise Refusal(text % {"project": project.name}, code="not_enough_labels")
