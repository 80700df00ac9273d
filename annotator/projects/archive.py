"""An archived project takes no work: no claims, imports or runs. All that is in it stays; it can be brought back."""

from datetime import datetime

from django.db import transaction

from annotator import audit
from annotator.models import Project
from annotator.refusals import Refusal


class Archived(Refusal):
    """What is archived takes no work."""

    code = "archived"


@transaction.atomic
def archive(project: Project, *, now: datetime) -> None:
    """Puts the project away. What annotators hold they may hand in. Twice does no harm."""
    if Project.objects.standing().filter(pk=project.pk, archived_at=None).update(archived_at=now):
        audit.record("project.archived", f"project {project.slug}", project=project)
    project.refresh_from_db(fields=["archived_at"])


@transaction.atomic
def restore(project: Project) -> None:
    """Brings the project back. Twice does no harm."""
    if Project.objects.standing().filter(pk=project.pk, archived_at__isnull=False).update(archived_at=None):
        audit.record("project.restored", f"project {project.slug}", project=project)
    project.refresh_from_db(fields=["archived_at"])


def require_in_use(project: Project) -> None:
    """Raises Archived for what is archived, by what the database says now."""
    if not Project.objects.in_use().filter(pk=project.pk).exists():
        raise Archived(f"{project.name} is archived. A manager can bring it back.")
