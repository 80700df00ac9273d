"""Finds words in rendered HTML, and wraps them, without changing its tags, attributes and formulas."""

import re
from collections.abc import Iterable
from html import unescape

BLANK = "\x00"  # no stored text holds it
# The sanitiser writes attributes in double quotes, and a `<` in a text as an entity, so this pattern can rely on both.
_NOT_TEXT = re.compile(r'<(span|div)[^>]* class="math[^>]*>[^<]*</\1>|<[^>"]*(?:"[^"]*"[^>"]*)*>')
_ENTITY = re.compile(r"&(?:#x?[0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});")


def visible_text(html: str, *, formula: str = BLANK) -> str:
    """Returns a copy of the same length with everything but text blanked: places in it are places in the HTML.

    Each entity is replaced by its character, repeated to the entity's length, and each formula by `formula`.
    """
    plain = _NOT_TEXT.sub(lambda match: (formula if match[1] else BLANK) * len(match[0]), html)
    return _ENTITY.sub(lambda match: _as_long(unescape(match[0]), len(match[0])), plain)


def _as_long(character: str, length: int) -> str:
    return character * length if len(character) == 1 else BLANK * length


def wrapped(html: str, places: Iterable[tuple[int, int, str]]) -> str:
    """Puts each place (start, end, opening tag) into that tag. Places are in order and do not overlap."""
    pieces, at = [], 0
    for start, end, tag in places:
        pieces += [html[at:start], tag, html[start:end], f"</{tag[1:].split()[0].rstrip('>')}>"]
        at = end
    return "".join([*pieces, html[at:]])
