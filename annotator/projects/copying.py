"""Makes a new project from another one's settings, rubric and guidelines, without its tasks and without its people."""

from typing import Any

from annotator.models import Project, User
from annotator.projects import project_settings
from annotator.projects.rubrics import RubricText

OWN = {"id", "slug", "name", "description", "created_at", "archived_at", "deleted_at", "releases_made", "paused"}
"""What belongs to one project alone. A paused project's copy is not paused: nobody works in it yet."""


def settings_of(source: Project) -> dict[str, Any]:
    """Returns the settings that a copy takes over."""
    fields = (field.name for field in Project._meta.concrete_fields if field.name not in OWN)
    return {name: getattr(source, name) for name in fields}


def copy_project(source: Project, *, slug: str, name: str, description: str, by: User) -> Project:
    """Creates a project with the source's settings, rubric and guidelines; its creator becomes its manager.

    Raises:
        InvalidProject: the slug is taken, or the source has settings from before they were bounded.
    """
    guideline = source.current_guideline()
    given = {**settings_of(source), "slug": slug, "name": name, "description": description}
    if source.rubric.project_id:
        given["rubric"] = RubricText.of(source.rubric)
    return project_settings.create(given, by=by, guidelines=guideline.text if guideline else "")
