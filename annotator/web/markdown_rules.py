"""What the markdown of chats has beyond the parser's: formulas in brackets, small tags, breaks in cells, task boxes.

Each rule looks at a character once, whatever the text.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, paragraph
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

_RAISED = re.compile(r"<(su[bp])>([^<>\n]{1,60})</\1>")
_CLOSING = re.compile(r"\\\]")
_BREAK = re.compile(r"<br ?/?>")
_BOXES = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}
_FORMULA_SIGNS = re.compile(r"[\\^_=+*/<>{}|]|^\s|\s$")


def add_rules(parser: MarkdownIt) -> None:
    parser.inline.ruler.before("escape", "bracketed_formula", _bracketed_formula)
    parser.block.ruler.before("math_block_eqno", "formula_before_text", _formula_before_text)
    parser.inline.ruler.before("html_inline", "raised", _raised)
    parser.core.ruler.after("inline", "cells_and_boxes", _cells_and_boxes)


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
    if closing < 0 or not state.src[closing + 2 : state.eMarks[_line_of(state, closing)]].strip():
        return False
    return paragraph(state, start, end, silent)


def _line_of(state: StateBlock, position: int) -> int:
    return bisect_left(state.eMarks, position)


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
                _draw_box(token.children[0])


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


def _draw_box(first: Token) -> None:
    if first.type == "text" and first.content[:4] in _BOXES:
        first.content = _BOXES[first.content[:4]] + first.content[4:]
