"""What commands have in common: the project that one names, and the text of a refusal as their error."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotator.infrastructure.db.storable_text import fault_in
from annotator.infrastructure.refusals import Refusal
from annotator.models import Project


class RefusableCommand(BaseCommand):
    """A command that a refusal ends with its text."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except Refusal as refusal:
            raise CommandError(str(refusal)) from refusal


class ProjectCommand(RefusableCommand):
    """A command whose first word is a project's slug."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's slug")


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
