"""{% marked text|markdown %} marks what looks like personal information, if the page's context has `pii`."""

from django import template
from django.template import Context
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString, mark_safe

from annotator.pii.highlights import marked as with_marks

register = template.Library()


@register.simple_tag(takes_context=True)
def marked(context: Context, html: str) -> SafeString:
    # Safe: the filter's HTML is sanitised, anything else is escaped here, and the marks add escaped titles only.
    return mark_safe(with_marks(conditional_escape(html), context.get("pii") or []))
