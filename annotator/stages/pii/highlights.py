"""Marks personal information in rendered HTML, wherever the detected texts occur within a text node."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape, unescape

from annotator.models import PiiKind, Task
from annotator.stages.pii.texts import likeness, text_at, texts_of

MOST = 300
"""Most different texts that are marked in one task. Marking more would hold up the page."""

# The sanitiser writes attributes in double quotes, and a `<` in a text as an entity, so this pattern can rely on both.
_NOT_TEXT = re.compile(r'<(span|div)[^>]* class="math[^>]*>[^<]*</\1>|<[^>"]*(?:"[^"]*"[^>"]*)*>')
_BLANK = "\x00"  # no stored text holds it
_ENTITY = re.compile(r"&(?:#x?[0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});")
_WRITTEN = {"&": "&{5}", "<": "<{4}", ">": ">{4}", '"': '(?:"{6}|")', "'": "(?:'{6}|'{5}|')"}


@dataclass(frozen=True)
class Mark:
    """A text to be marked, its kind of personal information, and the first span that has this text."""

    text: str
    kind: str
    span: int = 0

    def title(self) -> str:
        return str(PiiKind(self.kind).label)


def marks_of(task: Task) -> list[Mark]:
    """Returns marks for what the patterns found in the task. Marks by other annotators are for managers only."""
    spans = list(task.pii_spans.detected().in_order())
    texts = texts_of(task) if spans else {}
    marks: dict[str, Mark] = {}
    for span in spans:
        if (text := text_at(span, texts)).strip():
            marks.setdefault(text, Mark(text, span.kind, span.pk))
    return list(marks.values())[:MOST]


def marked(html: str, marks: Sequence[Mark]) -> str:
    """Wraps each occurrence of the marks' texts in a `<mark>`. Tags, attributes and formulas stay unchanged.

    The search runs on a copy of the same length, in which everything except text is blanked, and each entity is
    replaced by its character repeated to the entity's length. Positions in the copy are thus positions in the HTML.
    """
    if not marks:
        return html
    plain = _NOT_TEXT.sub(lambda match: _BLANK * len(match[0]), html)
    plain = _ENTITY.sub(lambda match: _as_long(unescape(match[0]), len(match[0])), plain)
    pieces, at = [], 0
    # Of overlapping stretches the first one is marked, and of those that begin together the longest.
    for start, end, mark in sorted(_stretches(plain, marks), key=lambda stretch: (stretch[0], -stretch[1])):
        if start < at:
            continue
        pieces += [html[at:start], f'<mark class="pii" title="{escape(mark.title())}">', html[start:end], "</mark>"]
        at = end
    return "".join([*pieces, html[at:]])


def _as_long(character: str, length: int) -> str:
    return character * length if len(character) == 1 else _BLANK * length


def _stretches(plain: str, marks: Sequence[Mark]) -> Iterator[tuple[int, int, Mark]]:
    for mark in marks:
        # An empty pattern would match everywhere, and one with blanks would match tags.
        if _BLANK in mark.text or not mark.text.strip():
            continue
        # Characters that HTML writes as entities are repeated to their length.
        parts = re.split(r"""(["'<>&])""", likeness(mark.text, whole_words=False))
        after = r"(?!\w)" if re.search(r"\w\s*$", mark.text) else ""
        for match in re.finditer("".join(_WRITTEN.get(part, part) for part in parts) + after, plain):
            start, end = match.span()
            # Checked here, not in the pattern: the search is several times as fast if the pattern begins with letters.
            if not re.match(r"\w\w", plain[max(0, start - 1) : start + 1]):
                yield start, end, mark
