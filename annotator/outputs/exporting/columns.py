"""What the layouts have in common: the types of their columns, the ratings that they read, and how rows name things."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import QuerySet

from annotator.models import Project, Rating
from annotator.outputs.exporting.filters import Filters

Row = dict[str, Any]
TEXT, INTEGER, NUMBER, BOOLEAN, TIME, JSON = "text", "integer", "number", "boolean", "time", "json"
Type = str | Sequence["Type"] | Mapping[str, "Type"]
"""The type of a column: one of these words, [type] for a list, or {name: type} for an object.

JSON is an object of whatever names, which tables hold as a text.
"""
MESSAGES: Type = [{"role": TEXT, "content": TEXT}]


def current_ratings(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Any:
    """Returns the ratings of current annotations, without those of the tasks `unseen`."""
    return _ratings(project, filters).exclude(response__task__in=unseen)


def counted_ratings(project: Project, filters: Filters) -> Any:
    """Returns the ratings that a layout of ratings would read, those of all tasks, to be counted."""
    return filters.of_time(_ratings(project, filters), "annotation__submitted_at")


def _ratings(project: Project, filters: Filters) -> Any:
    current = Rating.objects.filter(annotation__is_current=True, response__task__project=project)
    return filters.of_tasks(filters.of_versions(current, "annotation__"), project, "response__task__")
