"""Archives projects. An archived one takes no claims, imports or runs; all data stay, and it can be restored."""

from datetime import datetime

from django.db import transaction

from annotator.infrastructure import audit
from annotator.models import Project


@transaction.atomic
def archive(project: Project, *, now: datetime) -> None:
    """Archives the project. Annotators may still hand in what they hold. Doing so twice is harmless."""
    # The UPDATE's condition makes one of two simultaneous calls the one that is recorded.
    if Project.objects.standing().filter(pk=project.pk, archived_at=None).update(archived_at=now):
        audit.record("project.archived", f"project {project.slug}", project=project)
    project.refresh_from_db(fields=["archived_at"])


@transaction.atomic
def restore(project: Project) -> None:
    """Takes the project out of the archive. Doing so twice is harmless."""
    if Project.objects.standing().filter(pk=project.pk, archived_at__isnull=False).update(archived_at=None):
        audit.record("project.restored", f"project {project.slug}", project=project)
    project.refresh_from_db(fields=["archived_at"])
