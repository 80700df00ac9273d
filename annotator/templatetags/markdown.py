"""{{ text|markdown }} gives the text as sanitised HTML."""

from django import template
from django.utils.safestring import SafeString

from annotator.web.markdown import render_markdown

register = template.Library()


@register.filter
def markdown(text: str) -> SafeString:
    return render_markdown(text)
