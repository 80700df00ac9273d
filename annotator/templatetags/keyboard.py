"""{% key "skip" %} gives the user's key for an action, {% cap "skip" %} shows it on the control.

{% supports attributes as pairs %} gives the keys by which selected words become evidence.
"""

from collections.abc import Sequence
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from annotator.infrastructure.web.keyboard import ACTIONS, keys_of
from annotator.models import Attribute
from annotator.pages.rating.evidence_form import evidence_keys

register = template.Library()


@register.simple_tag(takes_context=True)
def key(context: dict[str, Any], action: str) -> str:
    return keys_of(context["user"])[action]


@register.simple_tag
def action_label(action: str) -> str:
    return str(ACTIONS[action].label)


# What is done with a selection too, or while one may be left over.
_WITH_A_SELECTION = ("mark", "divide_segment", "comment_segment", "raw")


@register.simple_tag(takes_context=True)
def supports(context: dict[str, Any], attributes: Sequence[Attribute]) -> list[tuple[Attribute, str]]:
    """Returns the attributes to which selected words may be given, each with its key."""
    keys = keys_of(context["user"])
    return evidence_keys(attributes, taken=[keys[action] for action in _WITH_A_SELECTION])


@register.simple_tag(takes_context=True)
def cap(context: dict[str, Any], action: str) -> SafeString:
    """Returns the key as it is drawn. Screen readers skip it: the control's label says what it does."""
    return format_html('<kbd aria-hidden="true">{}</kbd>', keys_of(context["user"])[action].upper())
