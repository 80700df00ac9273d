"""{% pages_of project as pages %} and {% places as entries %} give the entries of a page's navigation.

{% term "champion" %} links the word to its place in the glossary; {% term "kept" heading %} links another text.
"""

from typing import Any

from django import template
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString

from annotator.models import Project
from annotator.pages import navigation
from annotator.pages.glossary import TERMS
from annotator.reading import access

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


@register.simple_tag
def term(key: str, text: str | Promise = "") -> SafeString:
    """Returns the link. An unknown key raises KeyError, because a link must not lead nowhere."""
    known = TERMS[key]
    return format_html('<a class="term" href="{}#{}">{}</a>', reverse("glossary"), key, text or known.word)
