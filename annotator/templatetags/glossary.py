"""{% term "champion" %} links the word to its place in the glossary; {% term "kept" heading %} links another text."""

from django import template
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString

from annotator.views.glossary import TERMS

register = template.Library()


@register.simple_tag
def term(key: str, text: str | Promise = "") -> SafeString:
    """Returns the link. An unknown key raises KeyError, because a link must not lead nowhere."""
    known = TERMS[key]
    return format_html('<a class="term" href="{}#{}">{}</a>', reverse("glossary"), key, text or known.word)
