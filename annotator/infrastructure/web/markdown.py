"""Renders markdown as safe HTML. The sanitiser comes last, so that safety does not depend on the renderer."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from html import escape
from time import thread_time
from typing import Any, TypeVar

import nh3
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, paragraph
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.texmath import texmath_plugin
from pygments import format
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

HIGHLIGHT_UP_TO = 30_000
"""Characters. In a longer text, code and bare addresses stay plain, as marking them would hold up the page."""
HIGHLIGHT_SECONDS = 0.2
"""For one block of code. Those that take so long are large: few fit into HIGHLIGHT_UP_TO."""
T = TypeVar("T")

MATH = {
    "math_inline": "span",
    "math_inline_double": "span",
    "math_block": "div",
    "math_block_label": "div",
    "math_block_eqno": "div",
}
# No images: loading one would tell another host who is rating, and when.
TAGS = nh3.ALLOWED_TAGS - {"img", "map", "area"}
ATTRIBUTES = {
    **{tag: names for tag, names in nh3.ALLOWED_ATTRIBUTES.items() if tag != "img"},
    "code": {"class"},
    "div": {"class"},
    "span": {"class"},
    "ol": {"start"},
}


def render_markdown(text: str) -> SafeString:
    """Renders GitHub-flavoured markdown as HTML without scripts, styles, forms or images."""
    parser = _parser() if len(text) <= HIGHLIGHT_UP_TO else _swift_parser()
    html = parser.render(text)
    clean = nh3.clean(
        html,
        tags=set(TAGS),
        attributes=ATTRIBUTES,
        attribute_filter=_absolute_links,
        url_schemes={"http", "https", "mailto"},
        # A link opens beside the task, which may be half rated.
        # What may be wider than the page scrolls by keys as well.
        set_tag_attribute_values={
            "a": {"target": "_blank"},
            "pre": {"tabindex": "0", "role": "group", "aria-label": gettext("Code")},
            "table": {"tabindex": "0"},
        },
        # The other site neither learns the address of our page nor gets a handle to its window.
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(clean)


def _absolute_links(_: str, attribute: str, value: str) -> str | None:
    # A relative link in somebody's text would lead to our own pages, such as /logout/.
    absolute = value.lower().startswith(("http:", "https:", "mailto:"))
    return value if attribute not in ("href", "src") or absolute else None


@cache
def _parser() -> MarkdownIt:
    return _make_parser()


def _make_parser() -> MarkdownIt:
    parser = MarkdownIt("gfm-like", {"html": False, "linkify": True, "highlight": _highlighted})
    # Raw HTML stays visible as text. An image becomes a link, as showing it would call another host.
    parser.disable("image")
    parser.use(dollarmath_plugin, allow_space=False, double_inline=True).use(texmath_plugin, delimiters="brackets")
    parser.inline.ruler.before("math_inline", "unclosed", _unclosed)
    parser.inline.ruler.before("escape", "bracketed_formula", _bracketed_formula)
    parser.block.ruler.before("math_block_eqno", "formula_before_text", _formula_before_text)
    parser.inline.ruler.before("html_inline", "raised", _raised)
    parser.core.ruler.after("inline", "cells_and_boxes", _cells_and_boxes)
    for kind, tag in MATH.items():
        parser.add_render_rule(kind, _math_as(tag))
    return parser


def _unclosed(state: StateInline, silent: bool) -> bool:
    r"""Renders an opening \( as text if nothing closes it."""
    # The plugin would search the rest of the text at each of them, which takes minutes for some texts. The place of the
    # last closing one is therefore looked up once for each text.
    if not state.src.startswith("\\(", state.pos):
        return False
    if state.src not in state.env:
        state.env[state.src] = state.src.rfind("\\)")
    if state.pos < state.env[state.src]:
        return False
    state.pending += "" if silent else "("
    state.pos += 2
    return True


@cache
def _swift_parser() -> MarkdownIt:
    parser = _make_parser()
    parser.options["highlight"] = None
    return parser.disable("linkify")


def _math_as(tag: str) -> Callable[..., str]:
    """Returns a render rule that writes LaTeX as text into `tag`.

    The browser typesets it, and shows the source if it cannot.
    """

    def render(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
        return f'<{tag} class="math">{escape(tokens[index].content.strip(), quote=False)}</{tag}>'

    return render


def _highlighted(code: str, language: str, _: str) -> str:
    if not language:
        return ""
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return ""
    try:
        return str(format(_within_time(lexer.get_tokens(code)), HtmlFormatter(nowrap=True)))
    except _TooSlow:
        return ""


class _TooSlow(Exception):
    """Marking a block of code takes longer than a page may wait; it stays plain."""


def _within_time(tokens: Iterable[T]) -> Iterator[T]:
    # Some lexers search the rest of the block at each character. The time is this thread's own, so that a busy machine
    # shows the same as an idle one.
    ends_at = thread_time() + HIGHLIGHT_SECONDS
    for token in tokens:
        if thread_time() > ends_at:
            raise _TooSlow
        yield token


# Rules -------------------------------------------------------------------------------------------------------


_RAISED = re.compile(r"<(su[bp])>([^<>\n]{1,60})</\1>")
_CLOSING = re.compile(r"\\\]")
_BREAK = re.compile(r"<br ?/?>")
_BOXES = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}
_FORMULA_SIGNS = re.compile(r"[\\^_=+*/<>{}|]|^\s|\s$")


def _bracketed_formula(state: StateInline, silent: bool) -> bool:
    r"""Reads \[...\] within a line as a formula. Brackets that only a backslash keeps from being a link stay text."""
    if not state.src.startswith("\\[", state.pos):
        return False
    end = _closing(state, state.pos + 2)
    if not 0 <= end < state.posMax:
        return False
    content = state.src[state.pos + 2 : end]
    if not content.strip() or not _FORMULA_SIGNS.search(content):
        return False
    if not silent:
        token = state.push("math_inline", "math", 0)
        token.content, token.markup = content, "\\["
    state.pos = end + 2
    return True


def _closing(state: StateInline | StateBlock, begin: int) -> int:
    r"""Returns the place of the next closing \], or -1."""
    known = state.env.setdefault("bracket_ends", {})
    # Found once for each text: else each opening one would search the rest of it.
    if state.src not in known:
        known[state.src] = [match.start() for match in _CLOSING.finditer(state.src)]
    place = bisect_left(known[state.src], begin)
    return known[state.src][place] if place < len(known[state.src]) else -1


def _formula_before_text(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    r"""Reads a paragraph that begins with \[...\] and goes on behind it, of which the plugin would drop the rest."""
    begin = state.bMarks[start] + state.tShift[start]
    if silent or not state.src.startswith("\\[", begin):
        return False
    closing = _closing(state, begin + 2)
    if closing < 0 or not state.src[closing + 2 : state.eMarks[bisect_left(state.eMarks, closing)]].strip():
        return False
    return paragraph(state, start, end, silent)


def _raised(state: StateInline, silent: bool) -> bool:
    """Reads `<sub>2</sub>` and `<sup>2</sup>` as what they are."""
    if state.src[state.pos] != "<" or not (match := _RAISED.match(state.src, state.pos)):
        return False
    if not silent:
        tag, text = match[1], match[2]
        state.push(f"{tag}_open", tag, 1)
        state.push("text", "", 0).content = text
        state.push(f"{tag}_close", tag, -1)
    state.pos = match.end()
    return True


def _cells_and_boxes(state: StateCore) -> None:
    """Breaks lines of cells at `<br>`, the only way to break them, and draws the boxes of lists of tasks."""
    in_cell = False
    for place, token in enumerate(state.tokens):
        if token.type in ("td_open", "th_open", "td_close", "th_close"):
            in_cell = token.type.endswith("open")
        elif token.type == "inline" and token.children:
            if in_cell and "<br" in token.content:
                token.children = [piece for child in token.children for piece in _broken(child)]
            elif token.content[:4] in _BOXES and _begins_item(state.tokens, place):
                first = token.children[0]
                if first.type == "text" and first.content[:4] in _BOXES:
                    first.content = _BOXES[first.content[:4]] + first.content[4:]


def _broken(child: Token) -> list[Token]:
    if child.type != "text" or "<br" not in child.content:
        return [child]
    pieces: list[Token] = []
    for number, text in enumerate(_BREAK.split(child.content)):
        if number:
            pieces.append(Token("hardbreak", "br", 0))
        pieces.append(Token("text", "", 0, content=text, level=child.level))
    return pieces


def _begins_item(tokens: Sequence[Token], place: int) -> bool:
    return place > 1 and tokens[place - 1].type == "paragraph_open" and tokens[place - 2].type == "list_item_open"
