"""Refuses what an archived project does not take: imports, runs and changes."""

from django.utils.translation import gettext as _

from annotator.infrastructure.refusals import Refusal
from annotator.models import Project


def require_in_use(project: Project) -> None:
    """Raises Refusal if the project is archived."""
    # Asks the database: the instance may have been read before somebody archived the project.
    if not Project.objects.in_use().filter(pk=project.pk).exists():
        raise Refusal(
            _("%(project)s is archived. A manager can bring it back.") % {"project": project.name}, code="archived"
        )
