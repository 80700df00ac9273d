"""Marks in rendered HTML: what was found in a task's texts is wrapped, softly, wherever it stands in a text node."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape, unescape

from annotator.models import PiiKind, Task
from annotator.pii.texts import likeness, text_at, texts_of

MOST = 300
"""Different texts that are marked in one task: beyond them the page would wait for the marks."""

# The sanitiser writes attributes in double quotes, and `<` of a text as an entity.
_NOT_TEXT = re.compile(r'<(span|div)[^>]* class="math[^>]*>[^<]*</\1>|<[^>"]*(?:"[^"]*"[^>"]*)*>')
_BLANK = "\x00"  # no stored text holds it
_ENTITY = re.compile(r"&(?:#x?[0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});")
_WRITTEN = {"&": "&{5}", "<": "<{4}", ">": ">{4}", '"': '(?:"{6}|")', "'": "(?:'{6}|'{5}|')"}


@dataclass(frozen=True)
class Mark:
    """A text to be marked, the kind that the mark names, and the first span that has the text."""

    text: str
    kind: str
    span: int = 0

    def title(self) -> str:
        return str(PiiKind(self.kind).label)


def marks_of(task: Task) -> list[Mark]:
    """What the patterns found in the task. What other annotators marked stays with the manager."""
    spans = list(task.pii_spans.detected().in_order())
    texts = texts_of(task) if spans else {}
    marks: dict[str, Mark] = {}
    for span in spans:
        if (text := text_at(span, texts)).strip():
            marks.setdefault(text, Mark(text, span.kind, span.pk))
    return list(marks.values())[:MOST]


def marked(html: str, marks: Sequence[Mark]) -> str:
    """The HTML with each occurrence of the marks' texts in a `<mark>`; tags, attributes and formulas stay as they are.

    Works on a copy of the same length in which everything but text is blanked and each entity is repeated characters,
    so that places in the copy are places in the HTML.
    """
    if not marks:
        return html
    plain = _NOT_TEXT.sub(lambda match: _BLANK * len(match[0]), html)
    plain = _ENTITY.sub(lambda match: _as_long(unescape(match[0]), len(match[0])), plain)
    pieces, at = [], 0
    for start, end, mark in _without_overlaps(
        sorted(_found(plain, marks), key=lambda stretch: (stretch[0], -stretch[1]))
    ):
        pieces += [html[at:start], f'<mark class="pii" title="{escape(mark.title())}">', html[start:end], "</mark>"]
        at = end
    return "".join([*pieces, html[at:]])


def _as_long(character: str, length: int) -> str:
    return character * length if len(character) == 1 else _BLANK * length


def _found(plain: str, marks: Sequence[Mark]) -> Iterator[tuple[int, int, Mark]]:
    for mark in (shown for shown in marks if _BLANK not in shown.text and shown.text.strip()):
        for match in re.finditer(_as_written(mark.text), plain):
            start, end = match.span()
            # Asked here and not in the pattern, which is searched several times as fast if it begins with letters.
            if not re.match(r"\w\w", plain[max(0, start - 1) : start + 1]):
                yield start, end, mark


def _as_written(text: str) -> str:
    """The text's pattern, with the characters that HTML writes as entities as long as those."""
    parts = re.split(r"""(["'<>&])""", likeness(text, whole_words=False))
    after = r"(?!\w)" if re.search(r"\w\s*$", text) else ""
    return "".join(_WRITTEN.get(part, part) for part in parts) + after


def _without_overlaps(stretches: Sequence[tuple[int, int, Mark]]) -> Iterator[tuple[int, int, Mark]]:
    end = 0
    for stretch in stretches:
        if stretch[0] >= end:
            end = stretch[1]
            yield stretch
