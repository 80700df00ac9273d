"""{% key "skip" %} gives the user's key for an action, {% cap "skip" %} shows it on the control."""

from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from annotator.infrastructure.web.keyboard import ACTIONS, keys_of

register = template.Library()


@register.simple_tag(takes_context=True)
def key(context: dict[str, Any], action: str) -> str:
    return keys_of(context["user"])[action]


@register.simple_tag
def action_label(action: str) -> str:
    return str(ACTIONS[action].label)


@register.simple_tag(takes_context=True)
def cap(context: dict[str, Any], action: str) -> SafeString:
    """Returns the key as it is drawn. Screen readers skip it: the control's label says what it does."""
    return format_html('<kbd aria-hidden="true">{}</kbd>', keys_of(context["user"])[action].upper())
