"""{{ text|markdown }} gives the text as sanitised HTML."""

from django import template
from django.utils.safestring import SafeString

from annotator.projects import guidelines
from annotator.web.markdown import render_markdown

register = template.Library()


@register.filter
def markdown(text: str) -> SafeString:
    return render_markdown(text)


@register.filter
def without_blanks(text: str) -> str:
    """Leaves out what a template asks the guidelines' author to write: annotators would take it for an instruction."""
    return guidelines.without_blanks(text)
