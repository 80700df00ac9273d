"""{{ text|markdown }} gives the text as sanitised HTML.

{% marked text|markdown %} marks what looks like personal information, if the page's context has `pii`.
{% compared sheets as pairs %} gives each sheet with its response's HTML, if two responses can be compared by words.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from django import template
from django.template import Context
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString, mark_safe

from annotator.infrastructure.web.differences import with_differences
from annotator.infrastructure.web.markdown import render_markdown
from annotator.managing import guidelines
from annotator.stages.pii.highlights import marked as with_marks

register = template.Library()


@register.filter
def markdown(text: str) -> SafeString:
    return render_markdown(text)


@register.filter
def without_blanks(text: str) -> str:
    """Leaves out what a template asks the guidelines' author to write: annotators would take it for an instruction."""
    return guidelines.without_blanks(text)


@register.simple_tag(takes_context=True)
def marked(context: Context, html: str) -> SafeString:
    # Safe: the filter's HTML is sanitised, anything else is escaped here, and the marks add escaped titles only.
    return mark_safe(with_marks(conditional_escape(html), context.get("pii") or []))


@register.simple_tag(takes_context=True)
def compared(context: Context, sheets: Iterable[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], SafeString]]:
    """Returns the sheets, each with the marked HTML of its response; without where segments are rated, or not two."""
    shown = list(sheets)
    if len(shown) != 2 or any(sheet.get("table") for sheet in shown) or context["request"].GET.get("raw"):
        return [(sheet, SafeString()) for sheet in shown]
    responses = [sheet["response"] if "response" in sheet else sheet["ratings"].response for sheet in shown]
    first, second = (marked(context, render_markdown(response.text)) for response in responses)
    return list(zip(shown, map(mark_safe, with_differences(first, second)), strict=True))
