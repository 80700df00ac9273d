"""{% pages_of project as pages %} and {% places as entries %} give the entries of a page's navigation."""

from typing import Any

from django import template

from annotator import access
from annotator.models import Project
from annotator.views import navigation

register = template.Library()


@register.simple_tag(takes_context=True)
def pages_of(context: dict[str, Any], project: Project) -> list[navigation.Entry]:
    return navigation.pages_of(project, manages=access.manages(context["user"], project))


@register.simple_tag(takes_context=True)
def is_managed(context: dict[str, Any], project: Project) -> bool:
    """Returns whether the reader manages the project."""
    return access.manages(context["user"], project)


@register.simple_tag(takes_context=True)
def places(context: dict[str, Any]) -> list[navigation.Entry]:
    return list(navigation.places_of(context["user"]))
