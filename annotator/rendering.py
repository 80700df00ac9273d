"""Markdown to safe HTML. Everything passes the sanitiser last, whatever the renderer made of it."""

from functools import cache

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

HIGHLIGHT_UP_TO = 20_000
"""Characters: a longer code block is shown plain, as highlighting it would hold up the page."""

TAGS = nh3.ALLOWED_TAGS - {"img", "map", "area"}
ATTRIBUTES = {
    **{tag: names for tag, names in nh3.ALLOWED_ATTRIBUTES.items() if tag != "img"},
    "code": {"class"},
    "span": {"class"},
    "ol": {"start"},
}


def render_markdown(text: str) -> SafeString:
    """GitHub-flavoured markdown as HTML without scripts, styles, forms or remote images."""
    html = _parser().render(text)
    clean = nh3.clean(
        html,
        tags=set(TAGS),
        attributes=ATTRIBUTES,
        attribute_filter=_absolute_links,
        url_schemes={"http", "https", "mailto"},
        # A link never takes the place of a half-rated task.
        set_tag_attribute_values={"a": {"target": "_blank"}},
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(clean)


def _absolute_links(_: str, attribute: str, value: str) -> str | None:
    """A relative link in somebody's text would lead into our own pages."""
    absolute = value.lower().startswith(("http:", "https:", "mailto:"))
    return value if attribute not in ("href", "src") or absolute else None


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("gfm-like", {"html": False, "linkify": True, "highlight": _highlighted})
    # Raw HTML stays visible as text; an image becomes its description, as showing it would call another host.
    parser.disable("image")
    return parser


def _highlighted(code: str, language: str, _: str) -> str:
    if not language or len(code) > HIGHLIGHT_UP_TO:
        return ""
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return ""
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))
