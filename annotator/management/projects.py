"""Looks up the project that a command names."""

from django.core.management.base import CommandError

from annotator.db.storable_text import fault_in
from annotator.models import Project


def named_project(slug: str) -> Project:
    """Returns the project of this slug.

    Raises:
        CommandError: there is none; the message names slugs that exist.
    """
    projects = Project.objects.standing()
    # A NUL or half a surrogate pair cannot be sent to PostgreSQL: the query would end in a traceback.
    project = None if fault_in(slug) else projects.filter(slug=slug).first()
    if project is None:
        slugs = ", ".join(projects.values_list("slug", flat=True)[:20]) or "none yet"
        raise CommandError(f"There is no project {slug!r}. Projects: {slugs}.")
    return project
